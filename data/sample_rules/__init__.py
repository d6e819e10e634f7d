"""Rules and word lists of four languages, written for this repository; used by make_samples.py."""
