"""Programs of OneFlow and PyTorch, unchanged: their `import oneflow`, `import torch` gives minflow, the very modules.

    python -m minflow.compat script.py arguments ...      # runs a program so
    import minflow.compat.oneflow                         # or: from here on in this process

`../../docs/compat.md` says what is not the same. Read next: `names.py`.
"""
