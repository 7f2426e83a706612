"""The toolchain for tests that build kernels."""

from wings.kernels.tests.own.conftest import one_toolchain

__all__ = ["one_toolchain"]
