"""`headroom estimate`: every calculator at the prompt."""

import json

import pytest

from app.cli.estimator import run_estimate_command
from app.estimator import registry
from app.estimator.inputs import input_specs
from tests.amounts import each_of_sample
from tests.calculators.sample import ENTRY
from tests.published_configs import CONFIGS


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    """The sample stands beside the shipped estimates."""
    find = registry.find_estimate
    shipped = registry.list_estimates()

    def find_also(name):
        return ENTRY if name == "sample" else find(name)

    monkeypatch.setattr(registry, "find_estimate", find_also)
    monkeypatch.setattr(registry, "list_estimates", lambda: (*shipped, ENTRY))


@pytest.fixture
def run(capsys):
    def ask(*words):
        status = run_estimate_command(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return ask


def test_the_answer_is_verdict_figures_and_working(run):
    status, out, err = run("sample", "--gpus", "4", "--weights=int4")
    assert (status, err) == (0, "")
    assert out.startswith("Fits. Each GPU needs 5.4 GB")
    assert "Tokens a second  1,000 tokens/s  (800 to 1,300 tokens/s)" in out
    assert "P × 2 B ÷ N" in out
    assert "from Ainslie et al., GQA" in out
    assert "Overhead is assumed." in out


def test_json_gives_base_units_and_the_inputs_in_force(run):
    _, out, _ = run("sample", "--json", "--gpu", "2x H100")
    answer = json.loads(out)
    assert answer["inputs"]["gpus"] == 2
    assert answer["inputs"]["overhead"] == 4e9
    figures = {f["name"]: f for f in answer["figures"]}
    assert figures["free"]["unit"] == "B"
    assert figures["rate"]["low"] == 800.0
    assert answer["verdict"]["status"] == "fits"


def test_every_mistake_is_named_with_its_option_and_the_status_is_2(run):
    status, out, err = run("sample", "--gpus", "0", "--overhead", "much")
    assert (status, out) == (2, "")
    assert "--gpus: “0” for GPUs is too small" in err
    assert "--overhead: “much” for overhead cannot be read" in err


def test_a_mistyped_option_and_a_mistyped_name_are_guessed(run):
    assert "Did you mean --gpus?" in run("sample", "--gpu-s", "4")[2]
    assert "Did you mean “sample”?" in run("simple")[2]
    assert run("simple")[0] == 2


def test_an_option_without_its_value_says_what_it_takes(run):
    for words in (["--gpus"], ["--gpus", ""], ["--gpus="]):
        status, _, err = run("sample", *words)
        assert status == 2
        assert "--gpus needs a value: 1 to 1,024 GPUs." in err


def test_an_empty_file_is_no_default(run, tmp_path):
    file = tmp_path / "config.json"
    file.write_text("\n")
    status, _, err = run("sample", "--gpus", f"@{file}")
    assert status == 2
    assert f"--gpus: {file} is empty." in err


def test_a_bare_flag_is_a_yes_and_underscores_are_hyphens(run):
    assert run("sample", "--paged")[0] == 0
    assert "+" not in run("sample", "--paged", "no")[2]


def test_help_comes_from_the_declarations(run):
    status, out, _ = run("sample", "--help")
    assert status == 0
    assert "--overhead" in out
    assert "What the engine takes for itself. Takes 0 GB to 1,000 GB. Default: 4." in out


def test_the_list_names_every_estimate(run):
    _, out, _ = run("--list")
    assert all(entry.name in out for entry in registry.list_estimates())
    _, out, _ = run("--list", "--json")
    assert {"name": "sample", "title": "Sample memory", "summary": "Does it fit?"} in (
        json.loads(out)
    )


def test_a_value_can_be_read_from_a_file(run, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"hidden_size": 1}')
    _, out, _ = run("sample", "--note", f"@{config}", "--json")
    assert json.loads(out)["inputs"]["note"] == '{"hidden_size": 1}'
    status, _, err = run("sample", "--note", f"@{tmp_path}/none.json")
    assert status == 2
    assert "none.json cannot be read: No such file or directory." in err


@each_of_sample("config", CONFIGS, 1)
def test_every_command_takes_a_whole_configuration_from_a_file(run, tmp_path, config):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIGS[config], indent=2))
    for entry in registry.list_estimates():
        if "model" in input_specs(entry.inputs_type):
            status, out, err = run(entry.name, "--model", f"@{file}", "--json")
            assert (status, err) == (0, ""), entry.name
            assert "not understood" not in out, entry.name
