"""Options of OpenNMT-py 2.3.0, and of its relatives, that are not simply read under their name.

A name that is in no table here is an option of ours with the same name, or unknown. Defaults may
always be given. docs/opennmt.md has the same tables for users.
"""

from collections.abc import Mapping

# Refused unless they have their default, with what to do instead.
REFUSED: Mapping[str, str] = {
    name: reason
    for reason, names in {
        # OpenNMT-py 2.3.0
        "source features are not supported; write a feature into the source as a token, as in "
        "`NOUN h o u s e`": "src_feats_vocab src_feats",
        "it is a pickle; give both_embeddings, or src_embeddings and tgt_embeddings, as text": (
            "pre_word_vecs_enc pre_word_vecs_dec"
        ),
        "a model keeps the vocabularies it was trained with; delete the line": "update_vocab",
        "alignment supervision is not supported; delete the line; `translate -report_align` writes "
        "the alignments of attention": "lambda_align",
        "copy attention is not supported; delete the line and its like; `translate -replace_unk` "
        "copies unknown words": "copy_attn dynamic_dict",
        "coverage attention is not supported; delete the line; `translate -coverage_penalty` "
        "penalises repetition": "coverage_attn lambda_coverage",
        "use gpu_ranks": "gpuid",
        "use train_epochs: 1": "single_pass",
        "use train_steps or train_epochs": "epochs",
        "truncated backpropagation is not supported; delete the line": "truncated_decoder",
        "use encoder_type: brnn": "brnn",
        # other versions
        "a matrix has it: python -m tools.papers.tables run FILE": "base",
        # OpenNMT-entmax
        "use generator_function: entmax and generator_alpha": "loss_alpha",
        "alpha-entmax is exact here": "k bisect_iter global_attention_bisect_iter",
        "name corpora under data": "train_src train_tgt valid_src valid_tgt max_shard_size",
        "use freeze_word_vecs_enc": "fix_word_vecs_enc",
        "use freeze_word_vecs_dec": "fix_word_vecs_dec",
        "an -exactness_report holds it": "attn_out beam_score_out force_support dec_support",
        "`onmt-entmax bleu` scores files of translations": "report_bleu report_rouge",
        "lower-case the files": "lower",
        "every epoch is shuffled": "shuffle",
        "every search is batched": "fast",
        "only text is supported": "src_dir audio_enc_pooling sample_rate window_size window_stride "
        "window image_channel_size features_vocabs_prefix",
    }.items()
    for name in names.split()
}

# Accepted, with a note that lists them, because no result depends on them here: their values are
# not even read.
IGNORED = frozenset(
    # of onmt_build_vocab, whose file training may share
    "save_data n_sample dump_samples num_threads vocab_sample_queue_size dump_fields "
    "dump_transforms "
    # files and messages about a run
    "save_config log_file log_file_level verbose report_time exp exp_host gpu_verbose_level "
    "train_eval_steps train_metrics valid_metrics scoring_debug dump_preds attn_debug align_debug "
    "dump_beam "
    # places and speeds of computations; averages are always of probabilities
    "gpu_backend master_ip master_port max_generator_batches pool_factor shard_size fp32 "
    "avg_raw_probs loss_scale apex_opt_level prefetch_factor bucket_size_init "
    "bucket_size_increment "
    # of parts that are refused where they are named: copy attention, alignments, features,
    # convolutional and graph encoders
    "copy_attn_type copy_attn_force reuse_copy_attn copy_loss_by_seqlength alignment_layer "
    "alignment_heads full_context_alignment feat_merge feat_vec_size feat_vec_exponent "
    "reversible_tokenization prior_tokenization cnn_kernel_width bridge_extra_node bidir_edges "
    "state_dim n_edge_types n_node n_steps src_ggnn_size".split()
)

# Replaced by something close, which a note names.
NEAREST: Mapping[str, str] = {
    "batch_size_multiple": "batches of any size",
    "int8": "32-bit floats",
    "ratio": "a search that stops when its result is proven",
    "stepwise_penalty": "a coverage penalty of finished hypotheses",
}

# Names of other versions, and those of the same option here.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("rnn_size",),
    "enc_hid_size": ("enc_rnn_size",),
    "dec_hid_size": ("dec_rnn_size",),
    "subword_nbest": ("src_subword_nbest", "tgt_subword_nbest"),
    "subword_alpha": ("src_subword_alpha", "tgt_subword_alpha"),
    "onmttok_kwargs": ("src_onmttok_kwargs", "tgt_onmttok_kwargs"),
    "max_sent_length": ("max_length",),
}

# Values, and those that mean the same here.
EQUAL_VALUES: Mapping[tuple[str, str], str] = {
    ("optim", "fusedadam"): "adam",
    ("generator_function", "log_softmax"): "softmax",
    ("reset_optim", "keep_states"): "none",  # states are kept, with the options given now
    ("reset_optim", "states"): "all",  # which also counts updates from 0
}

# Hints for values that are refused.
VALUE_HINTS: Mapping[str, str] = {
    "lm": "language models are not supported; use OpenNMT-py for them",
    "transformer_lm": "language models are not supported; use OpenNMT-py for them",
    "ggnn": "graph encoders are not supported; use OpenNMT-py for them",
    "cnn": "convolutional models are not supported; use transformer",
    "SRU": "use LSTM or GRU",
    "sparseadam": "use adam",
    "inferfeats": "source features are not supported",
    "filterfeats": "source features are not supported",
    # OpenNMT-entmax
    "tsallis15": "OpenNMT-entmax's tsallis15 is entmax15 here",
    "tsallis": "OpenNMT-entmax's tsallis is entmax here",
    "smart": "OpenNMT-entmax's smart is plateau here",
}

# OpenNMT-py does not read these either without what they need: a note, not an error.
NOTED_IF_UNREAD = frozenset(
    "alpha beta coverage_penalty early_stopping early_stopping_criteria ignore_when_blocking "
    "phrase_table random_sampling_temp tensorboard_log_dir".split()
)

# Values of flags that may stand alone.
BARE_FLAGS: Mapping[str, str] = {"gpu": "0"}
