"""Tests that every architecture of the papers has a tiny checkpoint, with which tests/models test
the engine.
"""

from tiny_architectures import ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

from lookuplab.run import downloads


def test_every_architecture_of_the_paper_has_its_tiny_checkpoint():
    papers = {
        source.facts["architecture"]
        for source in downloads.load().values()
        if source.purpose.startswith("CloudAPIBench") and source.facts
    }
    assert papers <= {CAUSAL.get(name) for name in ARCHITECTURES}
