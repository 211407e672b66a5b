"""Joining in a real browser: it computes where many join from one address, and works in frames."""

import html
import re
import time

import httpx


def joiner(live):
    """Joins by a script that reads the study's own page, from this very address."""
    client = httpx.Client(headers={"sec-fetch-site": "same-origin"})

    def tickets(n):
        found = re.compile(r'name="ticket" id="ticket" value="([^"]+)"')
        return [html.unescape(found.search(client.get(live.link).text)[1]) for _ in range(n)]

    def join(ticket):
        return client.post(f"{live.link}/join", data={"ticket": ticket}).status_code

    return tickets, join


def test_a_browser_computes_where_many_join_from_one_address(chromium, serve):
    live = serve(guard_joins=True)
    tickets, join = joiner(live)
    crowd = tickets(110)
    time.sleep(1.2)
    codes = [join(ticket) for ticket in crowd]
    assert codes[:60] == [303] * 60
    assert codes[-1] == 429
    page = chromium.new_page()
    page.goto(live.link)
    page.wait_for_timeout(1200)  # no form is sent sooner
    for ticket in crowd[:8]:  # meanwhile there was room again
        join(ticket)
    with page.expect_response(re.compile("/join$")) as first:
        page.click("button.primary")
    assert first.value.status == 429
    page.wait_for_url("**/vote", timeout=90_000)
    assert page.locator(".choose").count() == 2
    page.close()


def test_a_double_click_makes_one_person(chromium, serve):
    live = serve(guard_joins=True)
    page = chromium.new_page()
    page.goto(live.link)
    page.dblclick("button.primary")
    page.wait_for_url("**/vote", timeout=60_000)
    headers = {"Authorization": f"Bearer {live.key}"}
    people = httpx.get(f"{live.address}/api/studies/drinks/participants", headers=headers).json()
    assert len(people) == 1
    page.close()
