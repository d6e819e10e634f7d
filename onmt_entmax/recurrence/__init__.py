"""The LSTM encoder and the input-feeding decoder: what they compute, and how whole batches do it.

| question | file |
|---|---|
| what are they? | `definition.py`: loops over the steps of one sentence |
| which rows does a step compute? | `steps.py`: packed for a CPU, fixed for CUDA graphs |
| how does a batch run? | `encoder.py`, `bridge.py`, `decoder.py`, `embedding.py`, `dropout.py` |
| what is one step, for autograd? | `layer.py`, `attention.py` |
| where do gradients of weights come from? | `deferred.py` |
| what does a search run? | `decoder_step.py`, with `source_memory.py` |
| who computes a step? | `backends/`: PyTorch, C++ or Triton; `choice.py` chooses |
"""
