"""Tests an artifact's files: all have one schema, and equal numbers give equal bytes."""

import json

import pandas as pd
import pytest
from doors import refused
from matplotlib.figure import Figure

from lookuplab import paths
from lookuplab.results.artifact import Artifact, read_csv, read_record, side_by_side, to_csv

ROW = {"model": "m", "condition": "low", "metric": "valid"}
ROW |= {"value": 100 / 3, "ci_low": 20.0, "ci_high": 50.5, "n": 267}


pytestmark = pytest.mark.usefixtures("kit")


def saved(*rows, profile="mini", **more):
    artifact = Artifact("demo", "table", profile)
    artifact.save(pd.DataFrame(rows), **more)
    return artifact


def test_numbers_are_written_with_six_significant_digits_and_read_back():
    bare = {"condition": "NA", "value": -0.0, "n": None, "ci_low": None, "paper_value": 84.39}
    file = saved(ROW, ROW | bare).place.with_suffix(".csv")
    assert file.read_text().splitlines()[1:] == [
        "demo,table,m,low,valid,33.3333,20,50.5,267,,",
        "demo,table,m,NA,valid,0,,50.5,,,84.39",
    ]
    assert to_csv(read_csv(file)) == file.read_text()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**ROW, "accuracy": 1}], "unknown or missing: accuracy"),
        ([ROW, ROW], "two numbers, .* for m / low / valid"),
        ([{**ROW, "ci_low": 60.0}], "ci_low above ci_high, for m / low / valid"),
        ([ROW], "no data at data/none"),
    ],
)
def test_rows_outside_the_schema_and_missing_data_are_refused(rows, message):
    with refused(message):
        saved(*rows, data=["data/none"])


def test_provenance_names_models_data_and_seeds_but_no_place_on_this_machine(kit):
    data = [kit.root / "abc", *(kit.root.parent / name / "abc" for name in ("one", "two"))]
    for file, text in zip(data, ("abc", "one", "two"), strict=True):
        paths.write_text(file, text)
    given = {"file": data[0], "folders": [kit.root.parent / "rich", "/a/all/*", "click"]}
    model = {"folder": str(kit.root / "data" / "mini" / "tiny")}
    artifact = saved(ROW, models=[model], data=data, seeds=3, parameters=given)
    text = artifact.place.with_suffix(".json").read_text()
    record = json.loads(text)
    assert str(kit.root.parent) not in text
    assert record["models"] == [{"folder": "data/mini/tiny"}]
    assert record["parameters"] == {"file": "abc", "folders": ["rich", "all/*", "click"]}
    # files with the same name have different keys; the sha256 of "abc" is in the SHA-2 standard
    assert [name[:3] for name in record["data"]] == ["abc", "abc", "abc"]
    assert record["data"]["abc"].startswith("ba7816bf8f01cfea414140de5dae2223")
    assert {"git", "packages", "processor", "device", "seeds", "wall_seconds"} <= set(record)


def test_a_picture_and_a_sentence_name_models_as_tables_do_and_no_folder(tmp_path, monkeypatch):
    place = str(tmp_path / "my data" / "tinydb-4.8.2")
    address = "http://localhost:8000/v1#tiny"
    given = {"models": [address], "repository": place}
    monkeypatch.setattr("lookuplab.results.artifact.kernel_parameters", lambda: given)
    artifact = saved(ROW | {"model": "tiny"})
    for name in ("tiny", "tiny?dtype=float32", address):
        assert artifact.quote("low", "valid", name).startswith("33.3")
    told = "tiny is right in 33.3 [20.0, 50.5] of tinydb-4.8.2. n = 267."
    number = artifact.quote("low", "valid")
    assert artifact.tell(f"{address} is right in {number} of {place}.").data == told
    assert artifact.place.with_suffix(".txt").read_text() == f"{told}\n"
    figure = Figure()
    title = figure.suptitle(f"Functions of {place}")
    artifact.draw(figure)
    assert title.get_text() == "Functions of tinydb-4.8.2"


def test_a_sentence_has_the_n_of_the_numbers_in_it_and_of_no_others():
    artifact = saved(ROW, ROW | {"condition": "high", "value": 40, "n": 7})
    artifact.quote("high", "valid")  # as in a cell that failed before it called ``tell``
    low = artifact.quote("low", "valid")
    assert artifact.tell(f"First {low}.").data.endswith(" n = 267.")
    assert artifact.tell(f"Then {artifact.quote('high', 'valid')}.").data.endswith("n = 7.")
    assert artifact.tell(f"Again {low}.").data.endswith(" n = 267."), "in whatever order"
    missing = artifact.quote("gate_0.5", "valid"), artifact.quote("low", "valid", "x")
    assert artifact.tell(f"{missing}").data == "('not measured', 'not measured')"


def test_importing_what_makes_tables_and_pictures_changes_no_option_of_pandas_and_no_style(
    run_python,
):
    script = """
import importlib, pkgutil, matplotlib, pandas
before = pandas.describe_option(_print_desc=False), dict(matplotlib.rcParams)
from lookuplab import results
for module in pkgutil.iter_modules(results.__path__, "lookuplab.results."):
    importlib.import_module(module.name)
assert before == (pandas.describe_option(_print_desc=False), dict(matplotlib.rcParams))
"""
    run_python(script)


def test_numbers_side_by_side_have_interval_and_n_and_counts_stand_alone():
    rows = [
        ROW | {"n": 40, "paper_value": 12.1},
        ROW | {"metric": "crashed", "value": 3.0, "ci_low": None, "ci_high": None},
        ROW | {"condition": "high", "metric": "p", "value": 0.125, "ci_low": None},
    ]
    found = side_by_side(rows, ["crashed", "absent", "valid"])
    assert found.to_dict("index") == {
        ("m", "low"): {"crashed": "3", "valid": "33.3 [20.0, 50.5] n=40 (paper 12.1)"}
    }
    assert list(side_by_side(rows, ["p"]).p) == ["0.125"]
    assert side_by_side(rows, ["absent"]).empty


@pytest.mark.parametrize("content", ["{}", '{"parameters": null}', "[]", "null"])
def test_a_json_without_parameters_is_one_line_that_names_the_file(content, tmp_path):
    (tmp_path / "x.json").write_text(content)
    with refused(r"x.json (is damaged|has no parameters).*: run its notebook again"):
        read_record(tmp_path / "x")
