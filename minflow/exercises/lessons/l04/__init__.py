"""Lesson 04: drawing a border."""
