"""Kernels: for who changes one, from a patch of it to the verdict on page load times."""

NEEDS = ("scenarios",)
PROVIDES = {
    "documents": {"kernels": "wings.kernels.verdicts.change_tables"},
    "forms": {
        "netdev": "wings.kernels.formats.netdev:FORM",
        "kcidb": "wings.kernels.formats.kcidb:FORM",
    },
    "kernel_verdicts": {"kernels": "wings.kernels.cli.compare"},
    "kernels": {"own": "wings.kernels.own.versions"},
    "result_documents": {"kernels.json": "wings.kernels.verdicts.document:AttributionDocument"},
    "verbs": {"kernel": "wings.kernels.cli.kernel:kernel"},
}
