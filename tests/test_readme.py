"""The README is what newcomers paste: its commands run, its answers are the server's, its tables are the settings."""

from __future__ import annotations

import re
import subprocess

from conftest import ROOT, Serve
from typer.testing import CliRunner

from benchmark.report import app as report
from memserver.config import Settings
from memserver.methods import variables

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [text for language, text in BLOCKS if language == "bash"]


def test_every_setting_is_in_a_table_with_its_default_and_none_is_stale() -> None:
    rows = re.findall(r"^\| `(MEMSERVER_\w+)` \| (?:`(.*?)`)? ?\| \S", README, re.MULTILINE)
    assert rows == [(variable.name, variable.default) for variable in variables(Settings())]


def test_the_quick_start_answers_what_the_readme_says(serve: Serve) -> None:
    url = serve()
    calls = [command for command in COMMANDS if command.startswith("curl ")]
    answers = [text for language, text in BLOCKS if language == "json"]
    assert len(calls) == len(answers) == 2
    for call, answer in zip(calls, answers, strict=True):
        command = call.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        pattern = re.escape(answer.strip()).replace("…", "[^,]+")
        assert re.fullmatch(pattern, done.stdout.strip()), done.stdout


def test_the_scripts_and_files_that_it_names_exist() -> None:
    named = set(re.findall(r"\b(?:scripts/\w+|tests/\w+\.py|engine\.py|types\.py)", README))
    assert {"scripts/serve", "scripts/test", "scripts/check"} <= named
    assert [name for name in sorted(named) if not ((ROOT / name).exists() or (ROOT / "memserver" / name).exists())] == []


def test_the_modules_that_it_runs_exist() -> None:
    modules = re.findall(r"python -m ([\w.]+)", README)
    assert modules
    assert [name for name in modules if not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()] == []


def test_the_results_are_what_their_command_prints_from_the_result_files() -> None:
    files = sorted(str(path) for path in (ROOT / "benchmark" / "results").glob("*.json"))
    printed = CliRunner().invoke(report, files)
    assert printed.exit_code == 0
    assert printed.stdout.strip() == README.split("<!-- results -->")[1].split("<!-- /results -->")[0].strip()


def test_each_link_within_it_leads_to_a_heading() -> None:
    headings = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", README)) <= headings
