"""The lab: client, access link and server in network namespaces, shaped, calibrated, read back."""
