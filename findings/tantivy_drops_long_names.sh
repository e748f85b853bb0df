#!/usr/bin/env bash
# tantivy 0.27.0: a name of 40 or more letters cannot be found. The index and the query drop it without a message.
#
# Expected: a document is found by each of its words.
# Seen: with the default tokenizer, a name of 39 letters is found, and one of 40 is not. parse_query makes an empty query of it, so the result is as empty
# as for a word that does not exist. Names with underscores are split into short words and are found. With tokenizer_name="whitespace", the long name is
# found, too.
# Why it matters: tantivy is the usual Python package for full-text search without a server. The names in Azure's and Java's SDKs are long: the document
# of BeginCreateOrUpdateVirtualNetworkGatewayConnection has no name in the index. Above all rare APIs have such names, so a retriever seems to be bad at
# rare APIs.
# What to do: split names before indexing, or register an analyser without this filter.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet tantivy==0.27.0 2>/dev/null
"$place/venv/bin/python" - <<'PY'
from importlib.metadata import version

import tantivy

NAMES = ["x" * 39, "x" * 40, "BeginCreateOrUpdateVirtualNetworkGatewayConnection", "begin_create_or_update_virtual_network_gateway_connection"]
print("tantivy", version("tantivy"))
seen = {}
for tokenizer in ("default", "whitespace"):
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", stored=True, tokenizer_name=tokenizer)
    index = tantivy.Index(schema.build())
    writer = index.writer()
    for name in NAMES:
        writer.add_document(tantivy.Document(text=[f"call {name} now"]))
    writer.commit()
    index.reload()
    seen[tokenizer] = [len(index.searcher().search(index.parse_query(name, ["text"]), 10).hits) for name in NAMES]
    for name, found in zip(NAMES, seen[tokenizer]):
        print(f"{tokenizer}: {found} documents for {name} ({len(name)} characters), query {index.parse_query(name, ['text'])}")
assert seen == {"default": [1, 0, 0, 1], "whitespace": [1, 1, 1, 1]}, "the behaviour changed"
PY
