"""Run OneFlow and PyTorch programs unchanged: `import oneflow` and `import torch` return minflow's own modules.

    python -m minflow.compat script.py arguments ...      # run one program
    import minflow.compat.oneflow                         # or: from now on in this process

`../../docs/compat.md` lists the differences. Read next: `names.py`.
"""
