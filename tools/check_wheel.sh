#!/usr/bin/env bash
# Build the wheel, and install it without extras in a new environment. Then train, translate and write
# a report with it on a toy corpus, from a folder outside the repository.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'echo "check_wheel.sh: FAILED at line $LINENO" >&2' ERR
unset PYTHONPATH
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" PIP_DISABLE_PIP_VERSION_CHECK=1

"${PYTHON:-python3}" -m venv "$work/env"
rm -rf "$root"/build/{lib,temp,bdist}*  # setuptools would pack what earlier builds left there
"$work/env/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist" "$root"
cd "$work"  # from a checkout, Python would import the package's sources
env/bin/pip install --quiet -c "$root/constraints.txt" dist/*.whl
env/bin/pip install --quiet --no-deps OpenNMT-py==2.3.0

test -f "$work"/env/lib/python*/site-packages/onmt_entmax/py.typed
# The package installs without a compiler, too; with one, the wheel must have the C++ code.
if command -v g++ >/dev/null; then
    env/bin/python -c "import onmt_entmax.sparse.backends._native, onmt_entmax.recurrence.backends._native"
fi

mkdir "$work/elsewhere"
cd "$work/elsewhere"
"$work/env/bin/python" - <<'END'
import random

generator = random.Random(1)
for part, size in (("train", 500), ("valid", 50)):
    lines = [" ".join(generator.choices("abcdef", k=generator.randint(2, 6))) for _ in range(size)]
    with open(f"{part}.src", "w") as source, open(f"{part}.tgt", "w") as target:
        source.writelines(f"{line}\n" for line in lines)
        target.writelines(f"{line.upper()}\n" for line in lines)
END
cat > toy.yaml <<'END'
data:
    corpus_1: {path_src: train.src, path_tgt: train.tgt}
    valid: {path_src: valid.src, path_tgt: valid.tgt}
save_model: run
rnn_size: 32
word_vec_size: 16
layers: 1
global_attention_function: entmax
generator_function: entmax
optim: adam
learning_rate: 0.005
train_steps: 200
valid_steps: 100
save_checkpoint_steps: 100
END
PATH="$work/env/bin:$PATH"
onmt-entmax --version
onmt-entmax train -config toy.yaml
onmt-entmax translate -model run -src valid.src -output valid.pred -n_best 1 \
    -exactness_report valid.jsonl
onmt-entmax report -model run -report valid.jsonl -output valid.html
test "$(wc -l < valid.pred)" -eq 50
test "$(wc -l < valid.jsonl)" -eq 50
grep -q '</html>' valid.html
# Only a checkout has the commands that repeat papers.
onmt-entmax experiment run matrix.yaml 2> error.txt && exit 1
grep -q "no command 'experiment'" error.txt
# The pretrained model is in the wheel; others can be fetched.
onmt-entmax inflect spanish preferir "V;SBJV;PST;3;SG" > form.txt
grep -q prefiriese form.txt
export XDG_CACHE_HOME="$work/cache"
python -m zipfile -c model.zip "$root/data/models/inflection-86"
sum="$(python -c 'import hashlib; print(hashlib.sha256(open("model.zip", "rb").read()).hexdigest())')"
onmt-entmax fetch-model "file://$PWD/model.zip" --sha256 "$sum"
onmt-entmax train -config toy.yaml -train_steps 1 -no_such_option 1 2> error.txt && exit 1
grep -q '^onmt-entmax train: error: ' error.txt
echo "check_wheel.sh: the wheel works"
