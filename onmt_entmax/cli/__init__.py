"""The console commands: `onmt-entmax COMMAND`, a file each."""
