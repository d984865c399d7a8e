"""Lesson 00: a program that learns."""
