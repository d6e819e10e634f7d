"""sacrebleu's own command, as a script that the server of commands can run."""

from sacrebleu.sacrebleu import main

if __name__ == "__main__":
    main()
