#!/bin/sh
# Makes the bundled model from two corpora under CC BY-SA: prepares the text, trains the biLM, packs it,
# trains a tagger on it and packs that as well.
#
#     examples/bundled_model/train.sh WIKITEXT_FOLDER EWT_FOLDER OUTPUT_FOLDER [option ...]
#
# WIKITEXT_FOLDER holds WikiText-2's train.txt, valid.txt and test.txt, EWT_FOLDER the *.conllu of
# UD_English-EWT. Options are passed to run_pretrain.py. To resume an interrupted run, repeat the command.
set -eu
here=$(dirname "$0")
wikitext=$1 ewt=$2 output=$3
shift 3
text=$output/text
mkdir -p "$text"

# No user types WikiText's @-@, @,@ and @.@: a hyphen is a word, as in EWT, and numbers are whole.
for split in train valid test; do
    python "$here/../../benchmarks/split_sentences.py" "$wikitext/$split.txt" "$text/wiki.tmp" \
        --unknown '<UNK>'
    sed -E 's/ @-@ / - /g; s/ @([,.])@ /\1/g; s/@([-,.])@/\1/g; s/[^ ]*<UNK>[^ ]*/<UNK>/g' \
        "$text/wiki.tmp" > "$text/wiki-$split.txt"
done
for split in train dev; do
    awk -F '\t' '$1 ~ /^[0-9]+$/ { printf "%s ", $2 } /^$/ { print "" }' \
        "$ewt"/*-"$split".conllu > "$text/ewt-$split.txt"
done
# The web's English is a tenth of Wikipedia's here; read twice, it is a fifth.
cat "$text/wiki-train.txt" "$text/ewt-train.txt" "$text/ewt-train.txt" > "$text/train.txt"

python "$here/../run_pretrain.py" --train_file "$text/train.txt" \
    --validation_file "$text/ewt-dev.txt" --test_file "$text/wiki-test.txt" \
    --config_overrides "$here/shape.json" --output_dir "$output/bilm" "$@"
python "$here/pack.py" bilm "$output/bilm"

python "$here/../run_pos.py" --train_file "$ewt"/*-train.conllu \
    --validation_file "$ewt"/*-dev.conllu --test_file "$ewt"/*-test.conllu \
    --num_train_epochs 12 --patience 4 --output_dir "$output/tagger"
python "$here/pack.py" tagger "$output/tagger" --task upos
