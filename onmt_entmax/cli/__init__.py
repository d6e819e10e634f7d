"""The console commands: `onmt-entmax COMMAND`, a file each.

`main.py` has the list of commands; `prepare table` is the file `prepare_table.py`. The docstring of
such a file is the help of its command, and its `main(arguments)` returns the exit status. The other
files have the parts of a command, or what several share:

- running a command: `command_modules`, `ending`, `streams`, `children`
- command lines and messages: `arguments`, `*_options`, `messages`, `dialogue`, `bad_rows`
- tables of `prepare` and `audit`: `tables`, `split_files`, `sampled_tables`, `table_layouts`,
  `shared_task`, `table_bad_rows`, `inflection_rows`
- `prepare table` and `prepare sigmorphon`: `preparation`, `sigmorphon_folder`, `table_messages`,
  `table_pairs`, `table_training`, `table_configuration`, `table_planning`, `table_commands`,
  `task_settings`, `hallucinated_pairs`, `pair_files`, `pair_messages`
- `prepare files`: `parallel_*`
- `prepare --minutes`: `planning`, `plans`, `plan_lines`, `planned_networks`, `measured_networks`
- `train.yaml` and the next commands: `training_file`, `schedules`, `yaml_lines`, `next_commands`,
  `shell_files`
- `predict`: `query_files`, `query_tables`, `checked_tables`, `table_findings`, `analogy_tables`,
  `predict_tables`, `output_layout`, `prediction_counts`, `resume_key`
- `inflect` and `paradigm`: `inflection_queries`, `inflection_lines`, `paradigm_queries`,
  `written_paradigms`
- `score`: `pair_scores`, `scored_targets`
- `distill`: `distill_work`, `new_queries`, `pseudo_labels`
- `audit`: `audit_*`, `audited_*`, `part_*`
- `evaluate`, `bleu` and `report`: `evaluate_*`, `evaluated_words`, `bleu_*`, `report_*`
- `import-onmt`, `export` and `serve`: `foreign_*`, `model_card`, `page_application`
"""
