"""The commands, the client, and input that is wrong."""

import base64
import json
import socket
import threading

import pytest
import uvicorn
from click.testing import CliRunner

import penchant as pc
import penchant.study as ps
from penchant.study.store import studies

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)
DRINKS = ("tea", "milk", "water", "juice")
QUESTION = ["--question", "Which would you rather drink?"]
ABOUT = ["--items", "{items}", *QUESTION]


def call(*arguments):
    """Run a command; a DataError comes back as what it says."""
    result = CliRunner().invoke(ps.command, [str(a) for a in arguments])
    if isinstance(result.exception, pc.DataError):
        raise result.exception
    return result


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("name,sweet,origin\ntea,1,India\nmilk,2,\nwater,0,\njuice,3,Spain\n")
    return path


@pytest.fixture
def folder(tmp_path, items):
    call("new", tmp_path / "My Drinks", "--items", items, *QUESTION)
    return tmp_path / "My Drinks"


def test_a_study_from_a_file(folder, tmp_path, items):
    assert ps.Folder(folder).study == "my-drinks"
    with ps.Folder(folder).open() as database:
        rows = database.read(studies.items_of, "my-drinks")
        config = database.read(studies.get, "my-drinks").config
    assert [row.name for row in rows] == ["tea", "milk", "water", "juice"]
    assert rows[3].features == {"sweet": 3.0}
    assert config == ps.Config("Which would you rather drink?")
    told = call("new", tmp_path / "other", "--items", items, *QUESTION).output
    assert "'origin' holds more than numbers" in told
    assert "next: penchant study serve" in told


def test_settings_by_option_and_by_file(tmp_path, items):
    consent = tmp_path / "consent.md"
    consent.write_text("I **agree**.")
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"repeat_share": 0.2, "completion_code": "X"}))
    chosen = ["--format", "rank", "--size", 3, "--language", "de", "--answers", 9]
    chosen += ["--consent", consent, "--settings", settings]
    call("new", tmp_path / "s", "--items", items, *QUESTION, *chosen)
    with ps.Folder(tmp_path / "s").open() as database:
        config = database.read(studies.get, "s").config
    assert (config.format, config.size, config.language) == ("rank", 3, "de")
    assert (config.answers_per_person, config.repeat_share) == (9, 0.2)
    assert config.consent == "I **agree**."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"name\n", "0 item"),
        (b"name\ntea\n", "1 item"),
        (b"name\ntea\nmilk\ntea\n", "line 4 names 'tea', as line 2 does"),
        (b"name,x\ntea,1\nmilk\n", "line 3 has 1 cells"),
        (b"name,name\ntea,1\n", "a name of its own"),
        (b"name,x\n,1\nmilk,2\n", "line 2 has no name"),
        (b"name,image\ntea,tea.png\nmilk,milk.png\n", "tea.png is not there"),
        (b"name,image,html\ntea,a.png,x\nmilk,,y\n", "both image and html"),
        (b"name,image\ntea,fake.png\nmilk,fake.png\n", "does not begin as"),
        (b"name,image\ntea,page.html\nmilk,page.html\n", "must end in"),
        (b"name,image\ntea,big.png\nmilk,big.png\n", "larger than 20 MB"),
        (b"name,text\ntea," + b"x" * 30_000 + b"\nmilk,y\n", "characters of text"),
        (b"\xff\xfe\x00bad", "UTF-8"),
        (b"tea,green\nmilk,white\n", "column called name"),
    ],
)
def test_broken_item_files_are_explained(tmp_path, content, words):
    (tmp_path / "fake.png").write_bytes(b"<script>")
    (tmp_path / "page.html").write_bytes(b"<p>")
    with (tmp_path / "big.png").open("wb") as big:
        big.write(PNG)
        big.truncate(ps.LARGEST_FILE + 1)
    path = tmp_path / "items.csv"
    path.write_bytes(content)
    with pytest.raises(pc.DataError, match=words):
        call("new", tmp_path / "s", "--items", path, *QUESTION)
    assert not (tmp_path / "s").exists()  # nothing half made stays


def test_media_are_copied_under_random_names(tmp_path):
    (tmp_path / "tea.png").write_bytes(PNG)
    path = tmp_path / "items.csv"
    path.write_text("item;image;strength\ntea;tea.png;2\nmilk;;1\n")
    (tmp_path / "media").mkdir()
    found, notes = ps.read_items(path, tmp_path / "media")
    assert notes == []
    assert [(i.name, i.media) for i in found] == [("tea", "image"), ("milk", "text")]
    assert (tmp_path / "media" / found[0].body).read_bytes() == PNG
    assert "tea" not in found[0].body


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "{tmp}/nothing"], "no folder of a study"),
        (["status", "{tmp}/nothing"], "no folder of a study"),
        (["new", "{folder}", *ABOUT], "holds a study already"),
        (["new", "{tmp}/x", "--items", "{tmp}/no.csv", *QUESTION], "there is no file"),
        (["new", "{tmp}/Ü", *ABOUT], "give --name"),
        (["new", "{tmp}/x", "--items", "{items}", "--question", " "], "question is empty"),
        (["new", "{tmp}/x", *ABOUT, "--format", "best", "--size", "8"], "a question shows 8"),
        (["new", "{tmp}/x", *ABOUT, "--database", "mysql://x/y"], "sqlite or postgresql"),
        (["import", "{folder}", "{tmp}/none.csv"], "there is no file"),
        (["export", "{folder}", "-o", "{tmp}/votes.xlsx"], "must end in"),
        (["restore", "{items}", "{tmp}/x"], "no backup"),
    ],
)
def test_mistakes_are_explained(tmp_path, folder, items, arguments, words):
    places = {"tmp": tmp_path, "folder": folder, "items": items}
    with pytest.raises(pc.DataError, match=words):
        call(*(argument.format(**places) for argument in arguments))


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(pc.DataError, match="--port"):
            ps.listen("127.0.0.1", taken.getsockname()[1])


def test_serving_is_local_unless_told_otherwise(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(ps.Supervisor, "run", lambda self: seen.append(self.sock.getsockname()[0]))
    monkeypatch.setattr("penchant.study.supervisor.stop_on_signals", lambda supervisor: None)
    local = call("serve", folder, "--port", 0)
    assert "participants: http://127.0.0.1:" in local.output
    assert "TLS" not in local.output
    public = call("serve", folder, "--port", 0, "--host", "0.0.0.0")
    assert f"participants: http://{socket.gethostname()}:" in public.output
    assert "put a server with TLS in front" in public.output
    named = call("serve", folder, "--port", 0, "--public", "https://x.example")
    assert "owner:        https://x.example/o/my-drinks?key=" in named.output
    assert seen == ["127.0.0.1", "0.0.0.0", "127.0.0.1"]


def test_votes_and_whole_studies_travel(tmp_path, folder):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser,user\ntea,milk,ann\ntea,milk,ann\nwater,juice,bob\n")
    call("import", folder, votes)
    call("export", folder, "-o", tmp_path / "out.csv")
    data = pc.read_comparisons(str(tmp_path / "out.csv"))
    assert (data.n_comparisons, data.users) == (3, ("ann", "bob"))
    call("backup", folder, "-o", tmp_path / "copy.zip")
    assert (tmp_path / "copy.zip").stat().st_mode & 0o077 == 0
    call("restore", tmp_path / "copy.zip", tmp_path / "again")
    call("export", tmp_path / "again", "-o", tmp_path / "out2.csv")
    assert (tmp_path / "out2.csv").read_text() == (tmp_path / "out.csv").read_text()
    state = json.loads(call("status", folder, "--json").stdout)
    assert state["state"] == "running"
    links = call("invite", folder, "-n", 2, "--public", "https://x.example").stdout.split()
    assert len(set(links)) == 2
    assert all(link.startswith("https://x.example/s/my-drinks?invite=") for link in links)


def test_choices_and_rankings_travel_whole(tmp_path, folder):
    votes = tmp_path / "votes.jsonl"
    columns = ("ballot", "user", "item", "position", "tied")
    rows = [(1, "ann", name, 1 + (name != "tea"), False) for name in ("tea", "milk", "water")]
    rows += [(2, "bob", name, k + 1, False) for k, name in enumerate(("water", "tea", "juice"))]
    rows += [(3, "bob", "water", 1, True), (3, "bob", "tea", 1, True)]
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    votes.write_text("\n".join(lines))
    given = pc.read_comparisons(str(votes))
    call("import", folder, votes)
    for ending in ("csv", "jsonl", "parquet"):
        call("export", folder, "-o", tmp_path / f"out.{ending}")
        data = pc.read_comparisons(str(tmp_path / f"out.{ending}"))
        assert data == given
        assert sorted(data.named_rankings(False)) == sorted(given.named_rankings(False))
        assert data.single_pairs() == given.single_pairs()
    with ps.Folder(folder).open() as database:
        model = ps.replayed(database, "my-drinks").model
    assert len(model.comparisons_.rankings) == 2


def test_robots_answer_a_copy(folder, tmp_path):
    told = call("simulate", folder, "--people", 3, "--answers", 4, "--keep", tmp_path / "kept")
    assert "failed requests: 0" in told.output
    assert "the study itself is not touched" in told.output
    untouched = json.loads(call("status", folder, "--json").stdout)
    assert untouched["counts"]["answers"] == 0
    kept = json.loads(call("status", tmp_path / "kept", "--json").stdout)
    assert kept["counts"]["answers"] >= 9
    assert [row["rank"] for row in kept["ranking"]] == [1, 2, 3, 4]


@pytest.fixture
def client(serve):
    """The owner's client of a study that answers over HTTP."""
    served = serve(items=[ps.NewItem(name, features={"sweet": len(name)}) for name in DRINKS])
    for _ in range(2):
        served.participant().answer(4)
    served.step()
    server = uvicorn.Server(ps.server_config(served.app, ""))
    with ps.listen("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        address = f"http://127.0.0.1:{sock.getsockname()[1]}/s/drinks"
        with ps.Client(address, served.key) as client:
            yield client
        server.should_exit = True
        thread.join()


def test_an_owner_has_a_client(client, tmp_path):
    assert client.overview()["counts"]["answers"] == 8
    assert [row["rank"] for row in client.ranking()] == [1, 2, 3, 4]
    new = client.add_items({"name": "cola", "features": {"sweet": 9.0}})
    client.retire(new[0])
    client.change(apart=0.1)
    client.set_state("paused")
    assert client.overview()["state"] == "paused"
    assert client.overview()["config"]["apart"] == 0.1
    assert len(client.invite(2)) == 2
    person = client.participants()[0]["id"]
    assert client.erase(person) == 4
    (tmp_path / "p.png").write_bytes(PNG)
    with pytest.raises(pc.DataError, match="features"):
        client.upload_item("picture", "image", tmp_path / "p.png")
    client.export(tmp_path / "v.parquet")
    assert pc.read_comparisons(str(tmp_path / "v.parquet")).n_items == 4
    client.backup(tmp_path / "b.zip")
    assert set(client.plan()) == {"stop", "left", "plan"}
    (tmp_path / "bad.csv").write_text("winner,loser\nx,y\n")
    with pytest.raises(pc.DataError, match="no item of the study"):
        client.import_votes(tmp_path / "bad.csv")
    for wrong in ("http://x/nothing", "http://x/s/drinks"):
        with pytest.raises(pc.DataError):
            ps.Client(wrong)


def test_tastes_are_known_and_shared():
    ann, bob = ps.RobotTaste(1, person=1), ps.RobotTaste(1, person=2)
    shown = [f"item {k}" for k in range(400)]
    apart = [ann.utility(s) - bob.utility(s) for s in shown]
    assert sum(d * d for d in apart) / 400 == pytest.approx(2 * 0.3**2, rel=0.3)
