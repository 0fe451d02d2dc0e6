"""The Space in a browser: typed, clicked, read. Screenshots go to the folder in SCREENSHOTS."""

import contextlib
import os
import re
import shutil
import socket
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
STARTING_SECONDS = 120
SIZES = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The folder to upload, made by the commands on its page."""
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
    log = space.parent / "space.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=space,
            env=os.environ | settings,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_it_answers(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            kill(process)


def wait_until_it_answers(process: subprocess.Popen, port: int, log: Path) -> None:
    """Asks the port, since what the program prints may stay in its buffer."""
    deadline = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"The Space ended with {process.returncode}:\n{log.read_text()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    pytest.fail(f"The Space did not answer within {STARTING_SECONDS} s:\n{log.read_text()}")


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
    page.get_by_label("Text", exact=True).fill("Dogs bark loudly.")
    page.locator("#tag").click()
    page.wait_for_function("document.querySelector('#tags').innerText.includes('Dogs')")
    located = page.locator("#tags .word").all()
    words = [word.inner_text() for word in located]
    assert [word.split()[0] for word in words] == ["Dogs", "bark", "loudly", "."]
    tags, shares = zip(*(word.split()[1:] for word in words), strict=True)
    assert tags[3] == "PUNCT"
    assert all(0 < int(share.removesuffix("%")) <= 100 for share in shares)
    colours = [word.evaluate("word => getComputedStyle(word).backgroundColor") for word in located]
    assert len(set(colours)) == len(set(tags)) > 1
    bars = page.locator("#layers .bar span:last-child").all_inner_texts()
    assert len(bars) == 3 and abs(sum(map(float, bars)) - 1) < 0.02
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / f"space-{size}-tags.png")

    page.get_by_role("tab", name="A word in context").click()
    page.get_by_label("Word", exact=True).fill("bank")
    page.get_by_label("Sentences, one per line").fill("The river bank.\nA bank lends money.")
    page.locator("#compare").click()
    page.wait_for_function("document.querySelector('#compared').innerText.includes('river')")
    captions = page.locator("#compared figcaption").all_inner_texts()
    cosines = [float(caption.split()[-1]) for caption in captions]
    # the token layer has one vector for the word, the others have one per sentence
    assert cosines[0] == 1 and max(cosines[1:]) < 0.999
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / f"space-{size}-contexts.png")
    # nothing is cut off at the side
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.get_by_label("Word", exact=True).fill("shore")
    page.locator("#compare").click()
    page.wait_for_selector("#compared .note")
    page.close()
