"""Options of `translate` that do not go together: errors of one line."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tests.options.translations import translation_with

SEARCHES_REFUSED = [
    ("-search enumerate -beam_size 7", "beam_size: is only read with search: beam or search:"),
    ("-search exact -stop first", "stop: first goes with search: beam"),
    ("-budget 5", "budget: is only read with search: exact or search: enumerate or verify"),
    ("-mass 0.5", "mass: is only read with search: enumerate"),
    ("-search enumerate -length_penalty avg", "search: enumerate lists by probability"),
    ("-mbr chrf -search exact", "mbr: goes with search: beam or enumerate"),
    ("-mbr chrf -length_penalty avg", "mbr: is by probability"),
    ("-abstain 1.5", "abstain: must be a number from 0 to 1"),
    ("-min_length 101", "min_length: is above max_length, 100"),
]
PENALTIES_REFUSED = [
    ("-length_reward 1 -length_penalty avg", "length_reward: does not go with length_penalty"),
    ("-length_reward -1", "length_reward: must be a number from 0 to 1,000"),
    ("-length_reward 1 -length_ratio 0", "length_ratio: must be above 0 and at most 1,000"),
    ("-length_ratio 2", "length_ratio: is only read with length_reward"),
    ("-length_reward 1 -mbr chrf", "mbr: is by probability"),
    ("-length_penalty wu -alpha 900 -max_length 100000", "alpha: too large"),
]
SAMPLING_REFUSED = [
    ("-abstain 0.5 -random_sampling_topk -1", "abstain: goes with a search"),
    ("-random_sampling_topk 3 -min_length 2", "min_length: goes with a search"),
    ("-random_sampling_topk 3 -stop first", "stop: goes with a search"),
    ("-random_sampling_topk 3 -length_reward 1", "length_reward: goes with a search"),
    ("-random_sampling_topp 0.5 -verify", "verify: goes with a search"),
    ("-random_sampling_topk 3 -search exact", "search: goes with a search"),
    ("-random_sampling_topk 3 -ban_unk_token", "ban_unk_token: goes with a search"),
    ("-random_sampling_topk 3 -constraint_regex a", "constraint_regex: goes with a search"),
    ("-random_sampling_topk 3 -mbr chrf", "mbr: goes with a search"),
    ("-random_sampling_topk 3 -replace_unk", "replace_unk: goes with a search"),
]
FILES_AND_OUTPUTS_REFUSED = [
    ("-constraint_regex (", "constraint_regex: character 1: '(' is not closed"),
    ("-constraints none", "constraints: no such file: none"),
    ("-constraints -", "constraints: - is no file, and the standard input cannot be read"),
    ("-tgt_prefix", "tgt_prefix: is only read with tgt"),
    ("-transforms bpee", "not 'bpee'; did you mean 'bpe'?"),
    ("-output /dev/stdout -report_align", "report_align: needs an output file"),
    ("-train_steps 5", "-train_steps: no such option; onmt-entmax train has it"),
]


@pytest.mark.parametrize(
    ("flags", "message"),
    [*SEARCHES_REFUSED, *PENALTIES_REFUSED, *SAMPLING_REFUSED, *FILES_AND_OUTPUTS_REFUSED],
)
def test_flags_that_exclude_each_other_are_refused_in_one_line(
    tmp_path: Path, flags: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        translation_with(tmp_path, flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
