; SQL. A table, a view or a composite type is a structure; what can be executed is a function.

(create_table
  [(keyword_table) (keyword_exists)] . (object_reference name: (identifier) @name)
  (column_definitions)? @body) @definition.struct
(create_view
  (object_reference name: (identifier) @name)
  (create_query)? @body) @definition.struct
(create_materialized_view
  (object_reference name: (identifier) @name)
  (create_query)? @body) @definition.struct
(create_type
  (object_reference name: (identifier) @name)
  (enum_elements)) @definition.enum
(create_type (object_reference name: (identifier) @name)) @definition.struct
(create_schema (identifier) @name) @definition.module

(create_function
  [(keyword_function) (keyword_exists)] . (object_reference name: (identifier) @name)
  (function_body)? @body) @definition.function
(create_procedure
  [(keyword_procedure) (keyword_exists)] . (object_reference name: (identifier) @name)
  (procedure_body)? @body) @definition.function
(create_trigger
  (keyword_trigger) . (object_reference name: (identifier) @name)) @definition.function

; --- references

(invocation (object_reference name: (identifier) @reference.call))
(create_trigger
  [(keyword_function) (keyword_procedure)]
  . (object_reference name: (identifier) @reference.call))

(relation (object_reference name: (identifier) @reference.use))
(from (object_reference name: (identifier) @reference.use))
(insert (object_reference name: (identifier) @reference.use))
(column_definition (object_reference name: (identifier) @reference.use))
(constraint (object_reference name: (identifier) @reference.use))
(alter_table (object_reference name: (identifier) @reference.use))
(drop_table (object_reference name: (identifier) @reference.use))
(drop_view (object_reference name: (identifier) @reference.use))
(drop_function (object_reference name: (identifier) @reference.use))
(create_index (object_reference name: (identifier) @reference.use))
(create_trigger (keyword_on) . (object_reference name: (identifier) @reference.use))
(function_argument custom_type: (object_reference name: (identifier) @reference.type))
