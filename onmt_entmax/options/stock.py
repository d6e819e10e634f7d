"""Options of OpenNMT-py 2.3.0 and related versions that are refused, ignored, replaced or renamed.

A name that is in no table here is an option of this package with the same name, or is unknown. Any
option may be set to its default. `stock_values.py` is about single values of options, and
docs/opennmt.md has these tables for users.
"""

from collections.abc import Mapping

_NO_FEATURES = (
    "source features are not supported; write a feature into the source as a token, as in "
    "`NOUN h o u s e`"
)
_PICKLED_VECTORS = (
    "it is a pickle; give both_embeddings, or src_embeddings and tgt_embeddings, as text"
)
_NO_COPY_ATTENTION = (
    "copy attention is not supported; delete the line and its like; `translate -replace_unk` "
    "copies unknown words"
)
_NO_COVERAGE_ATTENTION = (
    "coverage attention is not supported; delete the line; `translate -coverage_penalty` "
    "penalises repetition"
)
_EXACT_ENTMAX = "alpha-entmax is exact here"
_DATA = "name corpora under data"
_REPORT = "an -exactness_report holds it"
_BLEU = "`onmt-entmax bleu` scores files of translations"
_ONLY_TEXT = "only text is supported"

# Options that are refused unless they have their default, and what to do instead.
REFUSED: Mapping[str, str] = {
    # OpenNMT-py 2.3.0
    "src_feats_vocab": _NO_FEATURES,
    "src_feats": _NO_FEATURES,
    "pre_word_vecs_enc": _PICKLED_VECTORS,
    "pre_word_vecs_dec": _PICKLED_VECTORS,
    "update_vocab": "a model keeps the vocabularies it was trained with; delete the line",
    "lambda_align": "alignment supervision is not supported; delete the line; `translate "
    "-report_align` writes the alignments of attention",
    "copy_attn": _NO_COPY_ATTENTION,
    "dynamic_dict": _NO_COPY_ATTENTION,
    "coverage_attn": _NO_COVERAGE_ATTENTION,
    "lambda_coverage": _NO_COVERAGE_ATTENTION,
    "gpuid": "use gpu_ranks",
    "single_pass": "use train_epochs: 1",
    "epochs": "use train_steps or train_epochs",
    "truncated_decoder": "truncated backpropagation is not supported; delete the line",
    "brnn": "use encoder_type: brnn",
    # matrices of configurations, which have a command of the repository
    "base": "a matrix has it: python -m tools.papers.tables run FILE",
    # other versions of OpenNMT-py, and OpenNMT-entmax
    "loss_alpha": "use generator_function: entmax and generator_alpha",
    "k": _EXACT_ENTMAX,
    "bisect_iter": _EXACT_ENTMAX,
    "global_attention_bisect_iter": _EXACT_ENTMAX,
    "train_src": _DATA,
    "train_tgt": _DATA,
    "valid_src": _DATA,
    "valid_tgt": _DATA,
    "max_shard_size": _DATA,
    "fix_word_vecs_enc": "use freeze_word_vecs_enc",
    "fix_word_vecs_dec": "use freeze_word_vecs_dec",
    "attn_out": _REPORT,
    "beam_score_out": _REPORT,
    "force_support": _REPORT,
    "dec_support": _REPORT,
    "report_bleu": _BLEU,
    "report_rouge": _BLEU,
    "lower": "lower-case the files",
    "shuffle": "every epoch is shuffled",
    "fast": "every search is batched",
    "src_dir": _ONLY_TEXT,
    "audio_enc_pooling": _ONLY_TEXT,
    "sample_rate": _ONLY_TEXT,
    "window_size": _ONLY_TEXT,
    "window_stride": _ONLY_TEXT,
    "window": _ONLY_TEXT,
    "image_channel_size": _ONLY_TEXT,
    "features_vocabs_prefix": _ONLY_TEXT,
}

_OF_BUILD_VOCAB = frozenset(
    "save_data n_sample dump_samples num_threads vocab_sample_queue_size dump_fields "
    "dump_transforms".split()
)
_FILES_AND_MESSAGES = frozenset(
    "save_config log_file log_file_level verbose report_time exp exp_host gpu_verbose_level "
    "train_eval_steps train_metrics valid_metrics scoring_debug dump_preds attn_debug align_debug "
    "dump_beam".split()
)
# Where and how fast something is computed; averages are always of probabilities.
_COMPUTATION = frozenset(
    "gpu_backend master_ip master_port max_generator_batches pool_factor shard_size fp32 "
    "avg_raw_probs loss_scale apex_opt_level prefetch_factor bucket_size_init "
    "bucket_size_increment".split()
)
# These have no effect without parts that are refused: copy attention, alignments, features,
# convolutional and graph encoders.
_OF_REFUSED_PARTS = frozenset(
    "copy_attn_type copy_attn_force reuse_copy_attn copy_loss_by_seqlength alignment_layer "
    "alignment_heads full_context_alignment feat_merge feat_vec_size feat_vec_exponent "
    "reversible_tokenization prior_tokenization cnn_kernel_width bridge_extra_node bidir_edges "
    "state_dim n_edge_types n_node n_steps src_ggnn_size".split()
)
# Options that are accepted with a note that lists them, since no result depends on them. Their
# values are not read. Those of onmt_build_vocab are among them, as training may share its file.
IGNORED = _OF_BUILD_VOCAB | _FILES_AND_MESSAGES | _COMPUTATION | _OF_REFUSED_PARTS

# Options that are replaced by something close, and what that is, for a note.
NEAREST: Mapping[str, str] = {
    "batch_size_multiple": "batches of any size",
    "int8": "32-bit floats",
    "ratio": "a search that stops when its result is proven",
    "stepwise_penalty": "a coverage penalty of finished hypotheses",
}

# Names of other versions, and this package's names of the same options.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("rnn_size",),
    "enc_hid_size": ("enc_rnn_size",),
    "dec_hid_size": ("dec_rnn_size",),
    "subword_nbest": ("src_subword_nbest", "tgt_subword_nbest"),
    "subword_alpha": ("src_subword_alpha", "tgt_subword_alpha"),
    "onmttok_kwargs": ("src_onmttok_kwargs", "tgt_onmttok_kwargs"),
    "max_sent_length": ("max_length",),
}
