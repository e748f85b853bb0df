"""A key/value cache that does not copy itself at every token.

Transformers' DynamicCache concatenates: each step copies everything that it holds. On a CPU with many rows that costs
as much as the model's arithmetic. This one reserves room ahead and hands out views.
"""

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, EncoderDecoderCache

BLOCK = 64  # positions of room that are reserved at a time


class RoomyLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, positions, width), as views of larger buffers.

    Layers with a sliding window are kept whole too: the model's mask applies the window.
    """

    _room: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Append (rows, heads, new, width); return all keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        used = self.get_seq_length()
        end = used + key_states.shape[-2]
        if self._room is None or end > self._room[0].shape[-2]:
            pairs = ((self.keys, key_states), (self.values, value_states))
            self._room = tuple(self._grown(old, new, used, end) for old, new in pairs)
        for room, new in zip(self._room, (key_states, value_states), strict=True):
            room[:, :, used:end] = new
        self.keys, self.values = (room[:, :, :end] for room in self._room)
        return self.keys, self.values

    @staticmethod
    def _grown(old: torch.Tensor, new: torch.Tensor, used: int, end: int) -> torch.Tensor:
        rows, heads, _, width = new.shape
        room = new.new_empty(rows, heads, (end // BLOCK + 1) * BLOCK, width)
        if used:
            room[:, :, :used] = old
        return room

    def gather(self, columns: torch.Tensor) -> None:
        """Go on with these positions (rows, positions) of each row, in this order, and no room ahead."""
        rows, heads, room, width = self._room[0].shape
        flat = torch.arange(rows * heads, device=columns.device).view(rows, heads, 1) * room + columns[:, None]
        flat = flat.flatten().to(self._room[0].device)
        shape = (rows, heads, columns.shape[1], width)
        self._room = tuple(room.reshape(-1, width).index_select(0, flat).view(shape) for room in self._room)
        self.keys, self.values = self._room

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Only keep these rows, and the room ahead of them."""
        if self._room is not None:
            used = self.get_seq_length()
            self._room = tuple(room.index_select(0, indices.to(room.device)) for room in self._room)
            self.keys, self.values = (room[:, :, :used] for room in self._room)


class RoomyCache(DynamicCache):
    """A DynamicCache whose layers are RoomyLayers."""

    def __init__(self) -> None:
        Cache.__init__(self, layer_class_to_replicate=RoomyLayer)

    def gather(self, columns: torch.Tensor) -> None:
        """Go on with these positions (rows, positions) of each row, in this order."""
        for layer in self.layers:
            layer.gather(columns)


def decoder_cache(config) -> Cache:
    """An empty cache for a decoder. Models with recurrent layers keep the kind that their configuration asks for."""
    kinds = set(getattr(config.get_text_config(decoder=True), "layer_types", None) or ["full_attention"])
    return RoomyCache() if kinds <= {"full_attention", "sliding_attention"} else DynamicCache(config=config)


def encoder_decoder_cache(config) -> Cache:
    """An empty cache for decoder and cross attention; the latter is filled once, so it needs no room."""
    return EncoderDecoderCache(RoomyCache(), DynamicCache())
