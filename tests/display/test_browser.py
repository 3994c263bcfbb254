"""The page in a browser: nothing goes wrong, nothing is fetched, the figure is in view."""

from __future__ import annotations

import json
import queue
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not on PATH")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--v=0", "--window-size=1400,1000",
)  # fmt: skip

WATCH = """<script>var wrong = []; addEventListener("error", (e) => wrong.push(String(e.message)));
addEventListener("unhandledrejection", (e) => wrong.push(String(e.reason)));
addEventListener("securitypolicyviolation", (e) => wrong.push(e.violatedDirective));</script>"""

MEASURE = """<script>addEventListener("load", () => setTimeout(async () => {
  const shown = [...document.querySelectorAll("#main-figure svg")]
    .map((svg) => svg.getBoundingClientRect()).filter((box) => box.width > 0);
  const texts = [...document.querySelectorAll("#main-figure text")]
    .map((text) => text.getBoundingClientRect().height).filter((height) => height > 0);
  const frames = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
  const words = () => document.querySelector(".readout").textContent;
  const at = (box) => ({ clientX: box.left + box.width / 3, clientY: box.bottom - box.height / 3,
    pointerId: 1, bubbles: true, cancelable: true });
  const zoom = document.querySelector(".zoom");
  for (let k = 0; zoom && k < 100 && !zoom.querySelector("canvas"); k++) await frames();
  const said = {}, map = document.querySelector(".reader, .zoom canvas");
  if (map) {
    map.dispatchEvent(new PointerEvent("pointermove", at(map.getBoundingClientRect())));
    said.readout = words();
  }
  if (zoom) {
    const view = () => (zoom.dataset.view || "0 0 1").split(" ").map(Number);
    const key = (key) => map.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const legend = () => document.querySelector(".bar .ticks").textContent;
    const colours = () => {
      const copy = new OffscreenCanvas(map.width, map.height).getContext("2d");
      copy.drawImage(map, 0, 0);
      const { data } = copy.getImageData(0, 0, map.width, map.height);
      return new Set(new Uint32Array(data.buffer)).size;
    };
    said.label = map.getAttribute("aria-label");
    said.whole = { colours: colours(), legend: legend() };
    key("+"); said.plus = view();
    key("ArrowLeft"); said.moved = view();
    key("-"); key("0"); said.back = view();
    const third = at(map.getBoundingClientRect());
    for (let k = 0; k < 60; k++) {
      map.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, ...third }));
    }
    said.finest = view();
    await frames();
    map.dispatchEvent(new PointerEvent("pointermove", at(map.getBoundingClientRect())));
    said.close = { colours: colours(), legend: legend(), readout: words(),
      ticks: document.querySelector(".zoom .axes").textContent };
    const box = map.getBoundingClientRect(), x = box.left + 100, y = box.top + 100;
    const press = (type, pointerId, clientX) =>
      map.dispatchEvent(new PointerEvent(type, { pointerId, clientX, clientY: y }));
    const before = view();
    press("pointerdown", 1, x); press("pointermove", 1, x - 20); press("pointerup", 1, x - 20);
    said.dragged = view()[0] - before[0];
    press("pointerdown", 1, x); press("pointerdown", 2, x + 80);
    press("pointermove", 2, x + 40); press("pointerup", 1, x); press("pointerup", 2, x + 40);
    said.pinched = view()[2] / before[2];
    key("0");
    const links = document.querySelectorAll(".rank button");
    links[0].click();
    await frames();
    said.spot = { view: view(), links: links.length, readout: words(),
      focused: document.activeElement === map };
    document.querySelector(".zoom-buttons button:last-child").click();
    said.end = view();
  }
  document.querySelectorAll("th button")[1].click();
  const column = [...document.querySelectorAll("tbody tr")].map((row) => row.cells[1].textContent);
  const found = { wrong, said, column, width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    left: Math.min(...shown.map((box) => box.left)),
    right: Math.max(...shown.map((box) => box.right)),
    height: Math.max(...shown.map((box) => box.height)),
    smallest: Math.min(...texts),
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !name.startsWith("data:")) };
  parent.postMessage(JSON.stringify(found), "*");
}, 100));</script>"""

FRAME = """<!doctype html><body style="margin:0"><script>addEventListener("message",
(e) => fetch("{answer}", { method: "POST", mode: "no-cors", body: e.data }));
</script><iframe src="page.html" style="border:0;width:{width}px;height:900px"></iframe></body>"""


@contextmanager
def answers():
    """An address of this machine to which a page may post, and the queue of what it posted."""
    posted = queue.Queue()

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/", posted
        server.shutdown()


def measured(folder, page, width):
    """What a browser finds of a page in a frame of a width, and what it says on its console.

    A frame, as windows narrower than 500 pixels are refused. The browser has as long as it
    needs: what a page decompresses or draws takes longer where other tests run beside it.
    """
    body = page.replace("<body>", f"<body>{WATCH}").replace("</body>", f"{MEASURE}</body>")
    (folder / "page.html").write_text(body, "utf-8")
    log = folder / "browser.log"
    with answers() as (answer, posted), log.open("w") as said:
        frame = FRAME.replace("{width}", str(width)).replace("{answer}", answer)
        (folder / "frame.html").write_text(frame, "utf-8")
        address = (folder / "frame.html").as_uri()
        words = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", address]
        with subprocess.Popen(words, stdout=said, stderr=said) as browser:
            try:
                found = json.loads(posted.get(timeout=120))
            finally:
                browser.terminate()
    return found, [line for line in log.read_text().splitlines() if "CONSOLE" in line]


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
    if shape == "excited":
        words = found["said"]["readout"]
        assert re.fullmatch(r"Under the pointer: (over )?[\d,.]+ events per .+", words)
    if shape == "week":
        check_zoom(found["said"])
    numbers = [float(text.replace("−", "-")) for text in found["column"]]
    assert numbers == sorted(numbers, reverse=True)


def check_zoom(said):
    """Keys, wheel, drag, pinch, buttons and hot spots move the map; legend and readout follow."""
    number = r"([\d,.]+)(?: × 10[⁻⁰-⁹]+)?"
    told = re.compile(
        rf"At the pointer \(x {number}, y {number}\): about {number} events per km² per week; "
        rf"{number} events per week in this cell of {number} m"
    )
    x, y, rate, mass, side = map(float, told.fullmatch(said["readout"]).groups())
    assert (x, y) == pytest.approx((2.0, 4.0 / 3.0), abs=0.03)
    assert mass == pytest.approx(rate * (side / 1000.0) ** 2, rel=0.1)
    assert "arrow keys" in said["label"]
    assert said["plus"][2] == 2.0
    assert said["plus"][:2] == [0.25, 0.25]
    assert said["moved"][0] < 0.25
    assert said["back"] == [0.0, 0.0, 1.0]
    assert said["whole"]["colours"] > 50
    # at the greatest zoom a cell of the grid is 24 pixels wide
    assert said["finest"][2] > 3.0
    assert said["close"]["legend"] != said["whole"]["legend"]
    assert said["close"]["colours"] > 5
    # the place under the pointer stays there
    close = list(map(float, told.fullmatch(said["close"]["readout"]).groups()))
    assert close[:2] == pytest.approx((x, y), abs=0.03)
    assert close[2:] == pytest.approx((rate, mass, side), rel=0.15)
    assert "2.0" in said["close"]["ticks"]
    assert said["dragged"] > 0.0
    assert 0.4 < said["pinched"] < 0.6
    assert said["spot"]["links"] > 0
    assert said["spot"]["view"][2] > 1.5
    assert said["spot"]["focused"]
    assert said["spot"]["readout"].startswith("In the middle (x ")
    assert said["end"] == [0.0, 0.0, 1.0]
