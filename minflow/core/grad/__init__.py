"""The public part of autograd: grad modes, hooks, custom functions, Jacobians, and numeric checks of gradients.

The backward pass itself is `../autograd.py`. Read next: `modes.py`.
"""
