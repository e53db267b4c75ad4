"""Mapping files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesim.core.errors import TruesimError
from truesim.files.logs import read_log, read_mapping
from truesim.files.logs.mapping import UNIT_FACTORS, column_map

LOG = "stamp,j1,j2,current_2,volts\n1000,90,1,2,7\n1500,-45,2,3,7\n2000,0,3,4,7\n"
MAP = """
[columns]
time = { from = "stamp", unit = "ms" }
"qpos/shoulder" = { from = "j1", unit = "deg", sign = -1, offset = 0.1 }
"qpos/elbow" = "j2"
"ctrl/elbow" = { from = "current_2", scale = 0.5 }
"ctrl/fan" = 1.5
"""


@pytest.fixture
def files(tmp_path):
    """A log with names of its own, and the mapping that renames them."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "map.toml").write_text(MAP)
    return tmp_path


def test_columns_are_renamed_and_scaled(files):
    """Units, signs, offsets and constants; what is not named stays."""
    log = read_log(files / "log.csv", mapping=files / "map.toml")
    np.testing.assert_allclose(log.time, [1, 1.5, 2])
    np.testing.assert_allclose(log.column("qpos/shoulder"), [0.1 - np.pi / 2, 0.1 + np.pi / 4, 0.1])
    np.testing.assert_array_equal(log.column("qpos/elbow"), [1, 2, 3])
    np.testing.assert_array_equal(log.column("ctrl/elbow"), [1, 1.5, 2])
    np.testing.assert_array_equal(log.column("ctrl/fan"), [1.5, 1.5, 1.5])
    assert set(log.columns) == {"qpos/shoulder", "qpos/elbow", "ctrl/elbow", "ctrl/fan", "volts"}


def test_a_mapping_may_name_every_column(tmp_path):
    """Nothing need be left over."""
    (tmp_path / "a.csv").write_text("t,j\n0,1\n1,2\n")
    log = read_log(tmp_path / "a.csv", mapping={"columns": {"time": "t", "qpos/elbow": "j"}})
    np.testing.assert_array_equal(log.column("qpos/elbow"), [1, 2])


def test_json_says_the_same(files):
    """A mapping may be JSON, or a dictionary in Python."""
    content = {"columns": {"time": {"from": "stamp", "unit": "ms"}, "qpos/elbow": "j2"}}
    (files / "map.json").write_text(json.dumps(content))
    by_file = read_log(files / "log.csv", mapping=files / "map.json")
    by_content = read_log(files / "log.csv", mapping=content)
    np.testing.assert_array_equal(by_file.time, by_content.time)
    assert list(by_file.columns) == list(by_content.columns)


def test_one_column_may_serve_twice(files):
    """A torque can be both what drives the model and what is compared."""
    content = {"columns": {"time": "stamp", "ctrl/a": "j1", "sensor/a": {"from": "j1", "sign": -1}}}
    log = read_log(files / "log.csv", mapping=content)
    np.testing.assert_array_equal(log.column("ctrl/a"), -log.column("sensor/a"))


def test_a_table_without_header_or_stamps(tmp_path):
    """Names and rate come from the mapping."""
    (tmp_path / "a.txt").write_text("1 2\n3 4\n5 6\n")
    log = read_log(tmp_path / "a.txt", mapping={"file": {"columns": ["x", "y"], "rate": 400}})
    np.testing.assert_allclose(log.time, [0, 1 / 400, 2 / 400])
    np.testing.assert_array_equal(log.column("y"), [2, 4, 6])


def test_a_scaled_constant_spoils_no_missing_value(tmp_path):
    """Empty cells stay missing through a mapping."""
    (tmp_path / "a.csv").write_text("time,j\n0,90\n1,\n")
    mapping = {"columns": {"qpos/elbow": {"from": "j", "unit": "deg"}}}
    np.testing.assert_allclose(read_log(tmp_path / "a.csv", mapping=mapping).column("qpos/elbow"), [np.pi / 2, np.nan])


@given(st.sampled_from(sorted(UNIT_FACTORS)), st.sampled_from([1, -1]), st.floats(-10, 10))
def test_the_factor_is_sign_times_scale_times_unit(unit, sign, scale):
    """The pieces multiply."""
    source = column_map({"columns": {"a": {"from": "b", "unit": unit, "sign": sign, "scale": scale}}}).sources["a"]
    assert source.factor == pytest.approx(sign * scale * UNIT_FACTORS[unit])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"columns": {"qpos/elbow": "j3"}}, ["'j3'", "did you mean 'j2'", "qpos/elbow"]),
        ({"columns": {"qpos/elbow": {"from": "j2", "unit": "degr"}}}, ["'degr'", "did you mean 'deg'"]),
        ({"columns": {"qpos/elbow": {"from": "j2", "scal": 2}}}, ["'scal'", "did you mean 'scale'"]),
        ({"columns": {"qpos/elbow": {"from": "j2", "sign": 2}}}, ["sign 2", "1 and -1"]),
        ({"columns": {"qpos/elbow": {"from": "j2", "scale": "big"}}}, ["scale 'big'", "not a number"]),
        ({"columns": {"qpos/elbow": ["j2"]}}, ["['j2']", "valid is"]),
        ({"columns": {"volts": "j2"}}, ["'volts'", "already"]),
        ({"column": {}}, ["'column'", "did you mean 'columns'"]),
        ({"file": {"columns": ["a"]}}, ["5 columns", "names 1"]),
        ({"file": {"rate": -1}}, ["rate -1", "positive"]),
        ({"file": {"seperator": ";"}}, ["'seperator'", "did you mean 'separator'"]),
    ],
)
def test_mistakes_are_one_sentence(files, content, words):
    """What is wrong, in which file, what would be valid, and the nearest match."""
    with pytest.raises(TruesimError) as error:
        read_log(files / "log.csv", mapping=content)
    for word in words:
        assert word in str(error.value)


def test_a_broken_or_missing_file(tmp_path):
    """The file is named."""
    (tmp_path / "map.toml").write_text("[columns\n")
    with pytest.raises(TruesimError, match=r"map\.toml cannot be read as TOML"):
        read_mapping(tmp_path / "map.toml")
    with pytest.raises(TruesimError, match="no mapping file"):
        read_mapping(tmp_path / "gone.toml")
