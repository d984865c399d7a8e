"""Lesson 15: a small GPT."""
