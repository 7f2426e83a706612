"""The server end of the lab: nginx for every origin of a page, and the lab's name server."""
