"""The Space in a browser: typed, clicked, read. Screenshots go where SCREENSHOTS says."""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from helpers.launch import EXAMPLES, free_port, kill
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
SIZES = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The folder to be uploaded, made as its page says."""
    folder = tmp_path_factory.mktemp("space")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--target", folder]
    subprocess.run([*pip, *options, EXAMPLES.parent], check=True)
    for file in (EXAMPLES / "space").glob("*.*"):
        shutil.copy(file, folder)
    return folder


def test_requirements_are_the_packages(space):
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    assert (space / "requirements.txt").read_text().split() == project["dependencies"]
    [version] = re.findall(r'python_version: "(.*)"', (space / "README.md").read_text())
    assert project["requires-python"].startswith(f">={version},")


@pytest.fixture(scope="module")
def address(browser, space):
    port = free_port()
    settings = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=space,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    deadline = time.time() + 120
    while "Running on" not in said and time.time() < deadline:
        line = process.stdout.readline()
        assert line, said
        said += line
    yield f"http://127.0.0.1:{port}"
    kill(process)


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.fail("No browser was found; install Debian's chromium, or Chrome.", pytrace=False)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("size", SIZES)
def test_type_click_and_read(size, address, browser, tmp_path):
    width, height = SIZES[size]
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address)
    page.wait_for_selector("#tags .word")
    page.get_by_label("Sentence").first.fill("Dogs bark loudly .")
    page.locator("#tag").click()
    page.wait_for_function("document.querySelector('#tags').innerText.includes('Dogs')")
    located = page.locator("#tags .word").all()
    words = [word.inner_text() for word in located]
    assert [word.split()[0] for word in words] == ["Dogs", "bark", "loudly", "."]
    tags, sure = zip(*(word.split()[1:] for word in words), strict=True)
    assert tags[3] == "PUNCT"
    assert all(0 < int(share.removesuffix("%")) <= 100 for share in sure)
    colours = [word.evaluate("word => getComputedStyle(word).backgroundColor") for word in located]
    assert len(set(colours)) == len(set(tags)) > 1
    bars = page.locator("#layers .bar span:last-child").all_inner_texts()
    assert len(bars) == 3 and abs(sum(map(float, bars)) - 1) < 0.02
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / f"space-{size}-tags.png")

    page.get_by_role("tab", name="A word that moves").click()
    page.get_by_label("Word", exact=True).fill("bank")
    page.get_by_label("Sentences, one a line").fill("The river bank .\nA bank lends money .")
    page.locator("#look").click()
    page.wait_for_function("document.querySelector('#moves').innerText.includes('river')")
    captions = page.locator("#moves figcaption").all_inner_texts()
    cosines = [float(caption.split()[-1]) for caption in captions]
    # the word alone is the same, in a sentence it is not
    assert cosines[0] == 1 and max(cosines[1:]) < 0.999
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / f"space-{size}-moves.png")
    # nothing is cut off at the side
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.get_by_label("Word", exact=True).fill("shore")
    page.locator("#look").click()
    page.wait_for_selector("#moves .note")
    page.close()
