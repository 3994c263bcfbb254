"""The page in a browser: nothing goes wrong, nothing is fetched, the figure is in view."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not on PATH")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000",
)  # fmt: skip

WATCH = """<script>var wrong = []; addEventListener("error", (e) => wrong.push(String(e.message)));
addEventListener("securitypolicyviolation", (e) => wrong.push(e.violatedDirective));</script>"""

MEASURE = """<script>addEventListener("load", () => {
  const shown = [...document.querySelectorAll("#main-figure > svg")]
    .map((svg) => svg.getBoundingClientRect()).filter((box) => box.width > 0);
  const texts = [...document.querySelectorAll("#main-figure text")]
    .map((text) => text.getBoundingClientRect().height).filter((height) => height > 0);
  const map = document.querySelector(".reader");
  let readout = "";
  if (map) {
    const box = map.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 3, clientY: box.bottom - box.height / 3 };
    map.dispatchEvent(new PointerEvent("pointermove", at));
    readout = document.querySelector(".readout").textContent;
  }
  document.querySelectorAll("th button")[1].click();
  const column = [...document.querySelectorAll("tbody tr")].map((row) => row.cells[1].textContent);
  const found = { wrong, readout, column, width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    left: Math.min(...shown.map((box) => box.left)),
    right: Math.max(...shown.map((box) => box.right)),
    height: Math.max(...shown.map((box) => box.height)),
    smallest: Math.min(...texts),
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !name.startsWith("data:")) };
  parent.postMessage(JSON.stringify(found), "*");
});</script>"""

FRAME = """<!doctype html><body style="margin:0"><pre id="found"></pre><script>
addEventListener("message", (e) => { document.getElementById("found").textContent = e.data; });
</script><iframe src="page.html" style="border:0;width:{width}px;height:900px"></iframe></body>"""


def measured(folder, page, width):
    """What a browser finds of a page in a frame of a width, and what it says on its console.

    A frame, as windows narrower than 500 pixels are refused.
    """
    body = page.replace("<body>", f"<body>{WATCH}").replace("</body>", f"{MEASURE}</body>")
    (folder / "page.html").write_text(body, "utf-8")
    (folder / "frame.html").write_text(FRAME.replace("{width}", str(width)), "utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    address = (folder / "frame.html").as_uri()
    words = [BROWSER, *FLAGS, profile, "--window-size=1400,1000", "--dump-dom", address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])), said


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("shape", ["line", "week", "excited"])
def test_a_page_works_in_a_browser_at_any_width(request, shown, tmp_path, shape, width):
    page = request.getfixturevalue("excited_page") if shape == "excited" else shown(shape)
    found, said = measured(tmp_path, page, width)
    assert said == []
    assert found["wrong"] == []
    assert found["fetched"] == []
    assert found["width"] == width
    assert found["scroll"] <= width
    assert 0 <= found["left"] < found["right"] <= width
    assert found["height"] > 150
    assert found["smallest"] >= 9
    if shape != "line":
        assert re.fullmatch(r"Under the pointer: (over )?[\d,.]+ events per .+", found["readout"])
    numbers = [float(text.replace("−", "-")) for text in found["column"]]
    assert numbers == sorted(numbers, reverse=True)
