"""Lesson 12: it leaves home."""
