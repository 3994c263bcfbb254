"""The live page in Chromium: behind a prefix, with a token, and with HTML in all names."""

import pytest
from serving_kit import until

_browser = pytest.importorskip("_browser", reason="the folder benchmarks is not here")
page_in_browser = pytest.importorskip("page_in_browser")

from hplus import Box  # noqa: E402
from hplus.studies.frames import Frame  # noqa: E402
from hplus.studies.streams import StreamStudy  # noqa: E402

EVIL = page_in_browser.EVIL


@pytest.mark.skipif(_browser.chromium() is None, reason="Chromium is not on the path.")
def test_the_page_shows_a_post_and_an_alert_and_asks_no_one_else():
    study = StreamStudy(Frame((EVIL, "y"), Box((0, 0), (1, 1)))).begin()
    serving = page_in_browser.serving(study, "/below/here", "a-token-of-many-letters", EVIL)
    browser = _browser.Browser(390, 844)
    try:
        with serving as page:
            browser.open(page.address)
            browser.wait("document.getElementById('ask')?.open")
            browser.type(page.token)
            browser.press("Enter")
            browser.wait("document.getElementById('state').textContent === 'Live'")
            assert browser.run("document.getElementById('title').textContent") == EVIL
            assert EVIL in browser.run("document.getElementById('example').textContent")
            page_in_browser.fake_alert(page.watch)
            page.post(page_in_browser.events(5), (EVIL, "y"))
            browser.wait("document.querySelector('#total .big').textContent === '5'", 2.0)
            browser.wait("window.hplusSeen() === 5", 5.0)
            page.watch.service.subscribers.publish("alert", {})
            browser.wait("document.querySelectorAll('#alerts li').length === 1")
            assert EVIL in browser.run("document.querySelector('#alerts li').textContent")
            browser.run("document.querySelector('#alerts .act button').click()")
            until(lambda: page.watch.log.alerts["alert-1"]["acknowledged"])
            assert browser.run("document.querySelectorAll('main img').length") == 0
            assert browser.run("document.documentElement.scrollWidth") <= 390
            assert [u for u in browser.requests if not u.startswith((page.address, "about:"))] == []
            assert [said for said in browser.problems if "401" not in said] == []
    finally:
        browser.close()
