"""The Space in a browser: typed, clicked, read. Screenshots go where SCREENSHOTS says."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launch import EXAMPLES, free_port, kill
from playwright.sync_api import sync_playwright

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
SIZES = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def address():
    port = free_port()
    settings = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    command = [sys.executable, str(EXAMPLES / "space" / "app.py")]
    process = subprocess.Popen(
        command,
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
        pytest.fail("No browser was found; install Debian's chromium, or any Chrome.")
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
    words = page.locator("#tags .word").all_inner_texts()
    assert [word.split()[0] for word in words] == ["Dogs", "bark", "loudly", "."]
    assert words[3].split()[1] == "PUNCT"
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
