"""Models: OpenNMT-py's encoder and decoder, entmax attention, and the output layer.

| file | what it has |
|---|---|
| `building.py` | `build_model`, which makes a model from a configuration, with random weights |
| `opennmt_options.py` | a configuration as the options that OpenNMT-py's constructors read |
| `network.py` | `SparseNMTModel`: what training and search call |

The layers are in `nn/` and `recurrence/`; `checkpoint/` reads trained models.
"""

from onmt_entmax.model.building import build_model
from onmt_entmax.model.network import SparseNMTModel, count_parameters, device_of

__all__ = ["SparseNMTModel", "build_model", "count_parameters", "device_of"]
