"""OpenNMT-py's options plus ours, read strictly and handed to the rooms as frozen dataclasses."""
