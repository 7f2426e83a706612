"""Kernels: for who changes one, from a patch of it to the verdict on page load times."""

PROVIDES = {
    "document_tables": {"kernels": "wings.kernels.verdicts.change_tables"},
    "documents": {"kernels.json": "wings.kernels.verdicts.document:AttributionDocument"},
    "forms": {
        "netdev": "wings.kernels.formats.netdev:FORM",
        "kcidb": "wings.kernels.formats.kcidb:FORM",
    },
    "kernel_verdicts": {"kernels": "wings.kernels.cli.compare:VERDICTS"},
    "kernels": {"own": "wings.kernels.own.versions:OWN"},
    "verbs": {"kernel": "wings.kernels.cli.kernel:kernel"},
}
