"""A study served from a notebook: what goes in, what comes out, and that its processes end."""

import os
import re
import signal
import subprocess
import sys
import time
import warnings

import httpx
import pandas as pd
import pytest

import penchant as pc
import penchant.study as ps
from penchant.errors import DataError, DataWarning
from penchant.study.store import studies

QUESTION = "Which would you rather drink?"
PNG = bytes.fromhex(  # one grey point
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a494441"
    "54789c636000000002000148afa4710000000049454e44ae426082"
)
PATIENCE = 90.0
"""Seconds for anything to come to pass: a machine may be slow, or busy with other things."""


def until(condition):
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it never came to pass"
        time.sleep(0.1)


def is_up(address):
    try:
        return httpx.get(address, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


class Voter:
    """Somebody who votes over HTTP, for what comes first in the alphabet."""

    def __init__(self, link):
        self.link = link
        self.http = httpx.Client(headers={"origin": link.rsplit("/s/")[0]}, timeout=60)
        reply = self.http.post(f"{link}/join", data={})
        # browsers take Secure cookies from this machine over plain HTTP
        self.http.headers["cookie"] = reply.headers["set-cookie"].split(";")[0]

    def vote(self, n):
        for _ in range(n):
            question = self.http.get(f"{self.link}/next").json()["questions"][0]
            texts = [option["text"] for option in question["options"]]
            order = [[0], [1]] if texts[0] < texts[1] else [[1], [0]]
            body = {"question": question["id"], "order": order, "ms": 900}
            assert self.http.post(f"{self.link}/answer", json=body).status_code == 200


def test_names_go_in_votes_and_a_live_ranking_come_out(tmp_path):
    with pc.study.serve(["tea", "milk", "cocoa"], QUESTION, tmp_path / "drinks") as study:
        page = httpx.get(study.vote)
        assert QUESTION in page.text
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors http://localhost:* http://127.0.0.1:*" in policy
        assert "x-frame-options" not in page.headers
        assert len(study.answers()) == 0
        Voter(study.vote).vote(3)
        answers = study.answers()
        assert isinstance(answers, pd.DataFrame)
        assert sorted(zip(answers.winner, answers.loser, strict=True)) == [
            *(("cocoa", "milk"), ("cocoa", "tea"), ("milk", "tea"))
        ]
        until(lambda: len(study.ranking()) and study.ranking().name[0] == "cocoa")
        until(lambda: study.ranking().comparisons.sum() == 6)
        assert list(study.ranking().name) == ["cocoa", "milk", "tea"]
        assert {"rank", "utility", "low", "high", "prob_best"} < set(study.ranking().columns)
        client = ps.Client(study.owner)
        assert [row["name"] for row in client.ranking()] == list(study.ranking().name)
        assert study.vote in repr(study)
        assert study.owner in repr(study)
        assert f'<iframe src="{study.vote}"' in study._repr_html_()
    assert not is_up(study.vote)
    assert "<iframe" not in study._repr_html_()
    assert len(study.answers()) == 3  # they stay
    study.stop()  # a second time there is nothing to do


def test_the_same_call_goes_on_with_the_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = pc.study.serve(["tea", "milk"], QUESTION)
    try:
        assert study.folder == tmp_path / "which-would-you-rather-drink"
        Voter(study.vote).vote(1)
        again = pc.study.serve(["tea", "milk", "mate"], QUESTION, answers_per_person=7)
        assert again is study
        with ps.Client(study.owner) as client:
            assert [item["name"] for item in client.items()] == ["tea", "milk", "mate"]
            assert client.overview()["config"]["answers_per_person"] == 7
        key = study.owner
    finally:
        study.stop()
    with pc.study.serve(["tea", "milk"], QUESTION) as later:
        assert len(later.answers()) == 1
        with pytest.raises(DataError, match="not valid"):  # the link of the first has ended
            ps.Client(f"{later.owner.split('?')[0]}?{key.split('?')[1]}").overview()
        with pytest.raises(DataError, match="asks 'Which would you rather drink\\?'"):
            pc.study.serve(["tea", "milk"], "Which is hotter?", later.folder)


@pytest.fixture
def items_of(tmp_path, monkeypatch):
    """The items that a study gets; its processes are not started."""
    monkeypatch.setattr("penchant.study.notebook.StudyServer", lambda folder, port: folder)

    def get(items, folder="drinks", **settings):
        it = pc.study.serve(items, QUESTION, tmp_path / folder, **settings)
        with it.open() as database:
            config = database.read(studies.get, it.study).config
            return config, database.read(studies.items_of, it.study), it

    return get


def test_tables_and_paths_are_items_too(items_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(PNG)
    frame = pd.DataFrame(
        {
            "name": ["tea", "milk", 7],
            "image": ["a.png", None, float("nan")],
            "text": ["hot", "white", None],
            "sweet": [1, 2.5, 0],
            "iced": [True, False, True],
        },
        index=[5, 3, 9],
    )
    _, rows, it = items_of(frame, format="best", size=3)
    assert [(r.name, r.media, r.caption) for r in rows] == [
        *(("tea", "image", "hot"), ("milk", "text", ""), ("7", "text", ""))
    ]
    assert [r.features for r in rows] == [
        *({"sweet": 1.0, "iced": 1.0}, {"sweet": 2.5, "iced": 0.0}, {"sweet": 0.0, "iced": 1.0})
    ]
    assert (it.media / rows[0].body).read_bytes() == PNG
    _, again, _ = items_of(frame, format="best", size=3)
    assert again == rows
    assert len(list(it.media.iterdir())) == 1  # nothing is stored twice


@pytest.mark.parametrize("form", ["index", "dicts", "file", "generator"])
def test_names_come_from_an_index_a_list_or_a_file(items_of, tmp_path, form):
    frame = pd.DataFrame({"sweet": [1.0, 2.0]}, index=["tea", "milk"])
    (tmp_path / "items.csv").write_text("name,sweet\ntea,1\nmilk,2\n")
    rows = [{"name": "tea", "sweet": 1}, {"name": "milk", "sweet": 2}]
    given = {
        "index": frame,
        "dicts": rows,
        "file": str(tmp_path / "items.csv"),
        "generator": (row for row in rows),
    }
    _, found, _ = items_of(given[form])
    assert [(r.name, r.features["sweet"]) for r in found] == [("tea", 1.0), ("milk", 2.0)]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["tea"], "shows 2 items: 1 given"),
        ([], "shows 2 items: 0 given"),
        (["tea", "tea"], "row 1 names 'tea', as row 0 does"),
        (["tea", ""], "row 1 has no name"),
        ([{"name": "tea"}, {"title": "milk"}], "different columns"),
        (5, "items is a int"),
        ("nothing.csv", "there is no file"),
        ([{"name": "tea", "image": "no.png"}, {"name": "b", "image": ""}], "is not there"),
    ],
)
def test_items_that_are_none_leave_no_study(items_of, tmp_path, items, words):
    with pytest.raises(DataError, match=words):
        items_of(items)
    items_of(["tea", "milk"])  # the folder is free


def test_ignored_columns_and_wrong_settings_are_told(items_of):
    with pytest.warns(DataWarning, match="'maker' holds more than numbers"):
        items_of([{"name": "tea", "maker": "x"}, {"name": "milk", "maker": "y"}])
    with pytest.raises(DataError, match="'sizes' is no setting"):
        items_of(["tea", "milk"], sizes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config, _, _ = items_of(["tea", "milk", "a", "b"], "ranks", format="rank")
    assert (config.format, config.size) == ("rank", 4)


KERNEL = """
import sys, time
import penchant as pc
study = pc.study.serve(["tea", "milk"], "Which?", sys.argv[1])
print(study.vote, *[child.process.pid for child in study._supervisor.children], flush=True)
while True:
    try:
        time.sleep(0.1)
        if sys.argv[2:]:
            break
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def start_kernel(tmp_path, *more):
    command = [sys.executable, "-c", KERNEL, str(tmp_path / "drinks"), *more]
    # the group is interrupted as a whole, as notebooks do with their kernels
    kernel = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    link, *processes = kernel.stdout.readline().split()
    return kernel, link, [int(process) for process in processes]


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return sys.platform != "linux"


def test_a_killed_kernel_leaves_no_process_and_an_interrupt_ends_none(tmp_path):
    kernel, link, processes = start_kernel(tmp_path)
    assert is_up(link)
    os.killpg(kernel.pid, signal.SIGINT)
    assert re.match("interrupted", kernel.stdout.readline())
    assert is_up(link)
    assert all(map(is_alive, processes))
    kernel.kill()
    kernel.wait()
    until(lambda: not any(map(is_alive, processes)))
    assert not is_up(link)


def test_a_kernel_that_ends_stops_its_study(tmp_path):
    kernel, link, processes = start_kernel(tmp_path, "end")
    assert kernel.wait(timeout=PATIENCE) == 0
    assert not any(map(is_alive, processes))
    assert not is_up(link)
