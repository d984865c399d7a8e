"""Tools for authors of exercises: a new exercise (new.py), and the proof that a check can be trusted (proof.py)."""
