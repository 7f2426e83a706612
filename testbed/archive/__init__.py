"""Built pages as all others read them: exchanges, and the heads of their responses."""
