"""A job as AWX starts it: by ansible-runner, in a private data directory, with what AWX puts on the command line, into the environment and into variables.

What is not AWX here: there is no container, and no API that has taken the launch; the survey's answers are checked as it documents them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import ansible_runner
from awx_surveys import data
from checkout import BIN, ROOT

TEMPLATES = data("job_templates")
NUMBER = 42
MOST = 700_000  # AWX empties the result of an event that is larger
EVERYTHING = 10**9  # so that no result is emptied before it was measured


@dataclass
class Job:
    code: int
    events: list
    said: str

    @property
    def artifacts(self) -> dict:
        return next(event["event_data"].get("artifact_data", {}) for event in self.events if event["event"] == "playbook_on_stats")

    @property
    def recap(self) -> dict:
        return next(event["event_data"] for event in self.events if event["event"] == "playbook_on_stats")

    @property
    def largest(self) -> int:
        """In bytes, with all that is around a result."""
        return max(len(json.dumps(event).encode()) for event in self.events)

    @property
    def tasks(self) -> list[str]:
        return [event["event_data"]["task_action"] for event in self.events if event["event"] == "playbook_on_task_start"]


def here(*names, **more):
    """An inventory of so many hosts that are this machine."""
    own = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False, **more}
    return {"all": {"hosts": list(names)}, "_meta": {"hostvars": dict.fromkeys(names, own)}}


def nowhere(*names):
    """Hosts that nothing listens on: whoever asks one of them has an unreachable host in its recap."""
    lost = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o BatchMode=yes"}
    return {"all": {"children": ["nodes"]}, "nodes": {"hosts": list(names)}, "_meta": {"hostvars": dict.fromkeys(names, lost)}}


def launch(place: Path, name: str, inventory: dict, answers=None, *, limit="", job_type="", sliced=False, credential=None, extra=None) -> Job:
    """A job of that template. ``answers`` are those of its form, ``credential`` is what a credential puts into the environment."""
    template = TEMPLATES[name]
    place.mkdir(exist_ok=True)
    shutil.copytree(ROOT / "contrib/awx-project", place / "project")
    for directory in ("inventory", "env"):
        (place / directory).mkdir()
    script = place / "inventory/hosts"
    script.write_text("#!%s\nprint(%r)\n" % (sys.executable, json.dumps(inventory)))
    script.chmod(0o700)
    variables = {**template["extra_vars"], **_answered(template, answers or {}), **(extra or {}), **_told(template, sliced)}
    (place / "env/extravars").write_text(json.dumps(variables))
    (place / "env/envvars").write_text(json.dumps(_environment(credential or {})))
    (place / "env/cmdline").write_text(" ".join(_words(template, job_type or template["job_type"], limit)))
    run = ansible_runner.run(private_data_dir=str(place), playbook=template["playbook"], ident=str(NUMBER), quiet=True)
    return Job(run.rc, list(run.events), run.stdout.read())


def _answered(template, answers):
    """Survey defaults, then answers; what the form does not ask is not passed on."""
    questions = template.get("survey", {"spec": []})["spec"]
    assert set(answers) <= {one["variable"] for one in questions}
    return {**{one["variable"]: one["default"] for one in questions if "default" in one}, **answers}


def _told(template, sliced):
    own = {"job_id": NUMBER, "job_launch_type": "manual", "job_template_id": 7, "job_template_name": template["name"], "inventory_id": 1, "user_name": "admin"}
    if sliced:
        own.update(job_launch_type="workflow", workflow_job_id=41, workflow_job_name=template["name"], workflow_job_launch_type="manual")
    return {"%s_%s" % (prefix, key): value for prefix in ("awx", "tower") for key, value in own.items()}


def _environment(credential):
    return {
        "PATH": "%s:%s" % (BIN, os.environ["PATH"]),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "JOB_ID": str(NUMBER),
        "INVENTORY_ID": "1",
        "AWX_HOST": "https://awx.example",
        "MAX_EVENT_RES": str(EVERYTHING),
        **credential,
    }


def _words(template, job_type, limit):
    words = ["--check"] if job_type == "check" else []
    words += ["-u", "root"]
    words += ["--become"] if template["become_enabled"] else []
    words += ["--diff"] if template["diff_mode"] else []
    return words + (["-l", "'%s'" % limit] if limit else [])
