"""The uses of names that `tests.name_uses` finds in code."""

import pytest

from tests.name_uses import uses_in


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import pickle\npickle.loads(data)", "pickle.loads"),
        ("import pickle as p\np.loads(data)", "pickle.loads"),
        ("from pickle import loads\nloads(data)", "pickle.loads"),
        ("from pickle import loads as read\nread(data)", "pickle.loads"),
        ("from pickle import *", "pickle.*"),
        ("import torch.distributed as dist\ndist.gather_object", "torch.distributed.gather_object"),
        ("import torch\ntorch.hub.load(name)", "torch.hub.load"),
        ("import yaml\nyaml.load(data, yaml.FullLoader)", "yaml.FullLoader"),
        ("eval(text)", "eval"),
    ],
)
def test_a_name_is_found_however_it_was_imported(code: str, name: str) -> None:
    assert name in {use.name for use in uses_in(code)}


def test_a_method_is_not_found_as_a_function_of_its_name() -> None:
    assert "eval" not in {use.name for use in uses_in("model.eval()")}
