"""The files of `deploy/` and the Dockerfile: options that exist, probes that answer, no secrets."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import penchant.study as ps

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="the files come with the sources")


def documents():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def of_kind(kind):
    return [document for document in documents() if document["kind"] == kind]


def compose():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit():
    text = (DEPLOY / "penchant-study.service").read_text()
    return [line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line)]


def commands():
    """Every command line that the files run."""
    docker = re.findall(r"^CMD \[(.*)\]$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    yield [word.strip(' "') for word in docker[0].split(",")]
    yield compose()["services"]["study"]["command"]
    yield shlex.split(dict(unit())["ExecStart"])
    (deployment,), (job,) = of_kind("Deployment"), of_kind("CronJob")
    pod = deployment["spec"]["template"]["spec"]
    yield pod["containers"][0]["args"]
    yield shlex.split(pod["initContainers"][0]["command"][2].split("||")[1])
    yield job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]


def test_every_option_is_one_of_its_command():
    seen = []
    for words in commands():
        assert words[0].endswith("penchant")
        assert words[1] == "study"
        command = ps.command.get_command(None, words[2])
        known = {name for parameter in command.params for name in parameter.opts}
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        assert given <= known
        seen.append(words[2])
    assert seen == ["serve", "serve", "serve", "serve", "new", "backup"]


def test_probes_ask_for_pages_that_are_there(served):
    (deployment,) = of_kind("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    probes = {
        name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness")
    }
    # a full disk must not restart it
    assert probes == {"startup": "/healthz", "liveness": "/healthz"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    (check,) = re.findall(r"http://127.0.0.1:8000(/\w+)", (ROOT / "Dockerfile").read_text())
    for path in (*probes.values(), "/readyz", check):
        assert served.browser().get(path).status_code == 200


def test_manifests_fit_together():
    names = {(d["kind"], d["metadata"]["name"]) for d in documents()}
    assert len(names) == len(documents()) == 7
    (deployment,), (service,), (job,) = map(of_kind, ("Deployment", "Service", "CronJob"))
    spec = deployment["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == service["spec"]["selector"]
    # two model processes must not work on one database, nor two pods hold one volume
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    ports = [port["name"] for port in spec["template"]["spec"]["containers"][0]["ports"]]
    assert service["spec"]["ports"][0]["targetPort"] in ports
    backup = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for pod in (spec["template"]["spec"], backup):
        claims = {volume["name"]: volume for volume in pod["volumes"]}
        assert pod["securityContext"]["runAsNonRoot"]
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(claims)
            assert container["securityContext"]["readOnlyRootFilesystem"]
            for source in container["envFrom"]:
                ((kind, reference),) = source.items()
                kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
                assert (kinds[kind], reference["name"]) in names
        for volume in claims.values():
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in names


def test_passwords_are_placeholders_and_ports_are_local():
    (secret,) = of_kind("Secret")
    assert set(secret["stringData"].values()) == {"CHANGE-ME"}
    services = compose()["services"]
    given = {services["study"]["environment"]["PGPASSWORD"]}
    given.add(services["db"]["environment"]["POSTGRES_PASSWORD"])
    assert {value.split(":?")[0] for value in given} == {"${PASSWORD"}
    assert all(port.startswith("127.0.0.1:") for port in services["study"]["ports"])
    assert "ports" not in services["db"]


def test_manifests_are_valid_by_the_schemas_of_kubernetes():
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    for document in documents():
        validator.validate(document, validator.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_reads_the_unit(tmp_path):
    path = tmp_path / "penchant-study.service"
    text = (DEPLOY / "penchant-study.service").read_text()
    path.write_text(text.replace("/opt/penchant/bin/penchant", "/bin/true"))
    line = ["systemd-analyze", "verify", str(path)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_image_is_built_from_what_it_needs_alone():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    for rule in rules[1:]:
        if rule.startswith("!"):
            assert (ROOT / rule[1:]).exists(), rule
    needed = {"src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"}
    assert needed <= {rule[1:] for rule in rules}
