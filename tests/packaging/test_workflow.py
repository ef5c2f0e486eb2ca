"""The workflow for publishers: well formed, and calling what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import build
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "packages.yml"


def test_each_job_runs_the_build_command_with_arguments_that_it_knows() -> None:
    document = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert document["permissions"] == {"contents": "read"}
    built = set()
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        text = "\n".join(step.get("run", "") for step in job["steps"])
        (arguments,) = re.findall(r"python3? packaging/build\.py (.+)", text)
        built.add(build.parse(arguments.split()).system)
    assert built == {"linux", "windows-engine", "windows"}


def test_cache_key_names_files_that_exist() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    for names in re.findall(r"hashFiles\(([^)]*)\)", text):
        for name in re.findall(r"'([^']+)'", names):
            assert (ROOT / name).is_file(), name


def test_expressions_name_what_the_service_knows() -> None:
    """Its schema takes any expression, and an unknown name is then an empty text."""
    text = WORKFLOW.read_text(encoding="utf-8")
    expressions = re.findall(r"\$\{\{(.*?)\}\}", text)
    assert expressions
    for expression in expressions:
        known = r" (github\.workspace|hashFiles\('[\w./-]+'(, '[\w./-]+')*\)) "
        assert re.fullmatch(known, expression), expression


def test_jobs_wait_for_jobs_that_exist_and_take_what_those_left() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    left = {
        name: {step["with"]["name"] for step in job["steps"] if _uses(step, "upload-artifact")}
        for name, job in jobs.items()
    }
    taken = 0
    for job in jobs.values():
        needed = [job["needs"]] if "needs" in job else []
        for step in job["steps"]:
            if _uses(step, "download-artifact"):
                taken += 1
                assert any(step["with"]["name"] in left[name] for name in needed)
    assert taken == 1


def _uses(step: dict[str, str], action: str) -> bool:
    return step.get("uses", "").startswith(f"actions/{action}@")


def test_workflow_is_what_the_service_takes() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    answer = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
