"""A test case in the style of OneFlow's own tests of job functions."""

import unittest

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp


def cases(monkeypatch, devices):
    monkeypatch.setenv("ONEFLOW_TEST_DEVICE_NUM", str(devices))

    @flow.unittest.skip_unless_1n1d()
    class One(flow.unittest.TestCase):
        def test_relu(self):
            @flow.global_function()
            def relu_job(x: tp.Numpy.Placeholder((2, 2))):
                return flow.math.relu(x)

            x = np.array([[-1, 2], [3, -4]], "float32")
            result = relu_job(x).get().numpy()
            self.assertTrue(np.array_equal(result, np.maximum(x, 0)))

    @flow.unittest.skip_unless_1n2d()
    class Two(flow.unittest.TestCase):
        def test_mirrored(self):
            flow.config.cpu_device_num(2)

            @flow.global_function()
            def twice(x: tp.ListNumpy.Placeholder((2, 2))) -> tp.ListNumpy:
                return x + x

            parts = [np.ones((2, 2), "float32"), np.ones((1, 2), "float32")]
            self.assertEqual([a.shape for a in twice(parts)], [(2, 2), (1, 2)])

    return One, Two


@pytest.mark.parametrize(("devices", "ran", "skipped"), [(1, 1, 1), (2, 1, 1), (4, 0, 2)])
def test_skips_by_number_of_devices(monkeypatch, devices, ran, skipped):
    result, suite = unittest.TestResult(), unittest.TestSuite()
    for case in cases(monkeypatch, devices):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    try:
        suite.run(result)
    finally:
        flow.clear_default_session()
        flow.config.cpu_device_num(1)
    assert result.testsRun - len(result.skipped) == ran and len(result.skipped) == skipped
    assert not result.errors and not result.failures, result.errors + result.failures
