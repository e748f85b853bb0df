from lookuplab.models.local import Checkpoint  # noqa: F401


def read_checkpoint(name, revision, dtype, device_map):
    return Checkpoint(name, revision, dtype=dtype, device_map=device_map)


def context_of(config):
    return (
        None
        if config.is_encoder_decoder
        else getattr(config.get_text_config(), "max_position_embeddings", None)
    )
