#!/bin/sh
# write_seeds.sh MINIMIND FOLDER: writes the first inputs of the fuzz targets that are made from other files.
set -e
minimind=$1
out=$2
rm -rf "$out"
mkdir -p "$out/gguf" "$out/tokenizer" "$out/jinja" "$out/session" "$out/model" "$out/shard_index" "$out/api" \
  "$out/json_schema" "$out/json_pattern" "$out/config"

for name in v1-moe v2-yarn v3-moe; do
  "$minimind" convert -q tests/golden/$name/model.pth "$out/gguf/$name.gguf"
done
for type in f16 q8_0 q4_0; do
  "$minimind" convert -q --type $type tests/golden/v3-dense/model.pth "$out/gguf/$type.gguf" 2> /dev/null || true
done
"$minimind" convert -q --tokenizer tests/fuzz/tokenizer/small.json tests/golden/v3-dense/model.pth "$out/tokenizer/small.gguf"
cp "$out/tokenizer/small.gguf" "$out/gguf/tokenizer.gguf"

python3 - "$out/jinja" << 'END'
import json, pathlib, sys
for number, line in enumerate(open("tests/golden_jinja/cases.jsonl", encoding="utf-8")):
    pathlib.Path(sys.argv[1], str(number)).write_text(json.loads(line)["template"], encoding="utf-8")
END

python3 - "$out" << 'END'
import json, pathlib, sys
out, patterns = pathlib.Path(sys.argv[1]), set()
def collect(value):
    if isinstance(value, dict):
        patterns.update(name for name in value.get("patternProperties", {}) if isinstance(name, str))
        patterns.update([value["pattern"]] if isinstance(value.get("pattern"), str) else [])
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        collect(inner)
schemas = dict.fromkeys(open("tests/fuzz/json_schema.txt", encoding="utf-8").read().splitlines())
patterns.update(open("tests/fuzz/json_pattern.txt", encoding="utf-8").read().splitlines())
for file in ("cases", "suite"):
    for line in open(f"tests/golden_schemas/{file}.jsonl", encoding="utf-8"):
        schema = json.loads(line)["schema"]
        schemas[json.dumps(schema, ensure_ascii=False)] = collect(schema)
configs = open("tests/fuzz/config.txt", encoding="utf-8").read().splitlines()
for folder, texts in (("json_schema", schemas), ("json_pattern", sorted(patterns)), ("config", configs)):
    for number, text in enumerate(texts):
        out.joinpath(folder, str(number)).write_text(text, encoding="utf-8", errors="replace")
END

# A line of api.txt is the letter of a route, d for the first one of api_fuzz.cpp, and a body.
split -l 1 -a 3 tests/fuzz/api.txt "$out/api/"
for file in "$out"/api/*; do
  printf '%s' "$(cat "$file")" > "$file.body" && mv "$file.body" "$file"
done

for type in f32 f16 q8_0; do
  "$minimind" chat -q --greedy -n 4 -p a --kv-type $type --session "$out/session/$type" \
    -m tests/golden/v3-dense/model.pth --tokenizer tests/golden_tokenizer > /dev/null
done

# The first byte is a choice of the target.
for file in tests/golden/*/model.pth tests/golden/*/model.safetensors "$out"/gguf/*.gguf; do
  { printf '\0'; cat "$file"; } > "$out/model/$(echo "$file" | tr / -)"
done
{ printf '\0'; cat tests/golden/hf-qwen3-sharded/model.safetensors.index.json; } > "$out/shard_index/safetensors"
{ printf '\1'; cat tests/golden/hf-qwen3-sharded/model.safetensors.index.json; } > "$out/shard_index/bin"
