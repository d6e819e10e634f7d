"""OpenNMT-py's options and ours, read strictly into the configurations of the modules."""
