"""The field of a count that triggers of the database maintain."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models.signals import post_save


class ChildCount(models.PositiveIntegerField):
    """The number of rows behind a reverse relation, named by `children`; triggers count them (`benchapp.page_index`).

    Saving an older instance keeps the stored count, a new row begins with 0, and dumps leave the count out.
    `QuerySet.update` writes the given value.
    """

    def __init__(self, *args: Any, children: str, **options: Any):
        self.children = children
        super().__init__(*args, **{"default": 0, "db_default": 0, "editable": False, "serialize": False, **options})

    def deconstruct(self) -> Any:
        """The name, path and arguments of the field, for migrations."""
        name, path, args, options = super().deconstruct()
        return name, path, args, {**options, "children": self.children}

    def contribute_to_class(self, cls: type[models.Model], name: str, **options: Any) -> None:
        """Add the field to a model, whose rows may come from fixtures."""
        super().contribute_to_class(cls, name, **options)
        if not cls._meta.abstract:
            post_save.connect(self._count_loaded, sender=cls)

    @property
    def foreign_key(self) -> models.ForeignKey | None:
        """The foreign key of the counted children; None if `children` is no reverse side of one."""
        try:
            key = getattr(self.model._meta.get_field(self.children), "field", None)
        except FieldDoesNotExist:
            return None
        return key if isinstance(key, models.ForeignKey) else None

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """0 for an INSERT; for an UPDATE the column itself."""
        return 0 if add else models.F(self.attname)

    def _count_loaded(self, instance: models.Model, raw: bool, using: str, **options: Any) -> None:
        """Count the children of a row of a fixture: `loaddata` saves without `pre_save`."""
        if not raw or self.foreign_key is None:
            return
        children = self.foreign_key.model._base_manager.using(using).filter(**{self.foreign_key.name: instance})
        rows = type(instance)._base_manager.using(using).filter(pk=instance.pk)
        # The row is locked since it was saved: no other writer changes its count before this transaction ends.
        rows.update(**{self.name: children.count()})
