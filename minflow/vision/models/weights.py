"""Why no weights are fetched, and how one's own are loaded."""

from __future__ import annotations

from ...core.base.errors import DataError
from ...core.where import here


def refuse_pretrained(name: str) -> None:
    """Say how trained weights get into the model."""
    raise DataError(
        f"{name}(pretrained=True): minflow ships no trained weights and fetches none",
        where=here(),
        hint=f"model = {name}(); model.load_state_dict(flow.load('weights.safetensors')) - a state_dict of PyTorch, "
        "written with safetensors.torch.save_file or numpy.savez, has the same names",
    )
