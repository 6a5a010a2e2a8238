"""The artists of figures, by their ids."""


def artists(ax, prefix):
    """The artists of an axes whose id begins so."""
    return {child.get_gid(): child for child in ax.get_children() if (child.get_gid() or "").startswith(prefix)}
