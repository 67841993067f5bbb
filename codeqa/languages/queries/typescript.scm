; What only TypeScript has; the rest is in ecmascript.scm, JSX in jsx.scm.

; --- types -----------------------------------------------------------------------------
(class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class
(pair key: (property_identifier) @name value: (class !name body: (_) @body)) @definition.class
(export_statement "default" @name value: (class !name body: (_) @body)) @definition.class
(class name: (type_identifier) @name body: (_) @body) @definition.class
; const api = { … } as const satisfies Api
(variable_declarator name: (identifier) @name value: [
  (as_expression (_ (object)))
  (satisfies_expression (_ (object)))
]) @scope
(interface_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(type_alias_declaration name: (type_identifier) @name) @definition.type
(internal_module name: (_) @name body: (_) @body) @definition.module
(module name: (_) @name body: (_) @body) @definition.module

(function_signature name: (identifier) @name) @definition.function
(method_signature name: (_) @name) @definition.method
(abstract_method_signature name: (_) @name) @definition.method
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.lambda

; --- supertypes and types --------------------------------------------------------------
(extends_clause value: (identifier) @reference.inherits)
(extends_clause value: (_ object: (_) @receiver property: (_) @reference.inherits))
(extends_clause value: (call_expression arguments: (arguments (identifier) @reference.inherits)))
(implements_clause (type_identifier) @reference.inherits)
(implements_clause (generic_type name: (type_identifier) @reference.inherits))
(implements_clause (nested_type_identifier module: (_) @receiver name: (_) @reference.inherits))
(extends_type_clause type: (type_identifier) @reference.inherits)
(extends_type_clause type: (generic_type name: (type_identifier) @reference.inherits))
(extends_type_clause type: (nested_type_identifier module: (_) @receiver name: (_) @reference.inherits))

(nested_type_identifier module: (_) @receiver name: (type_identifier) @reference.type)
(type_identifier) @reference.type
(type_query (identifier) @reference.use)
(required_parameter value: (identifier) @reference.value)
(public_field_definition value: (identifier) @reference.value)

(type_annotation (member_expression
  object: (call_expression function: (import) arguments: (arguments . (string) @import.module))
  property: (property_identifier) @import.name))
(export_statement "=" @export.alias (identifier) @export.name)
(import_statement (import_require_clause (identifier) @import.alias source: (string) @import.module))

; --- what a variable holds -------------------------------------------------------------
(variable_declarator name: (identifier) @variable
  type: (type_annotation [(type_identifier) (generic_type)] @variable.type))
(required_parameter !name pattern: (identifier) @variable
  type: (type_annotation (type_identifier) @variable.type))
(required_parameter (accessibility_modifier) pattern: (identifier) @variable.member
  type: (type_annotation (type_identifier) @variable.type))
(public_field_definition name: (_) @variable.member
  type: (type_annotation (type_identifier) @variable.type))
(public_field_definition name: (_) @variable.member
  value: (new_expression constructor: (identifier) @variable.type))
(optional_parameter !name pattern: (identifier) @variable
  type: (type_annotation (type_identifier) @variable.type))
