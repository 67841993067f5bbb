; Java

; --- definitions -----------------------------------------------------------------------
(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(record_declaration name: (identifier) @name body: (_) @body) @definition.class
(interface_declaration name: (identifier) @name body: (_) @body) @definition.interface
(annotation_type_declaration name: (identifier) @name body: (_) @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum

(method_declaration name: (identifier) @name body: (_)? @body) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(compact_constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor

(field_declaration declarator: (variable_declarator name: (identifier) @name
  value: (lambda_expression body: (_) @body))) @definition.lambda
(local_variable_declaration declarator: (variable_declarator name: (identifier) @name
  value: (lambda_expression body: (_) @body))) @definition.lambda

; an anonymous class belongs to the field or variable that it is bound to, else to its type
(variable_declarator name: (identifier) @name
  value: (object_creation_expression (class_body))) @scope
(variable_declarator name: (identifier) @name
  value: (method_invocation object: (object_creation_expression (class_body)))) @scope
(variable_declarator name: (identifier) @name
  value: (method_invocation arguments: (argument_list (object_creation_expression (class_body))))) @scope
(assignment_expression left: [(identifier) @name (field_access field: (identifier) @name)]
  right: (object_creation_expression (class_body))) @scope
(return_statement (object_creation_expression
  type: [(type_identifier) @name (generic_type (type_identifier) @name)] (class_body))) @scope
(return_statement (method_invocation object: (object_creation_expression
  type: [(type_identifier) @name (generic_type (type_identifier) @name)] (class_body)))) @scope
(expression_statement (method_invocation arguments: (argument_list (object_creation_expression
  type: [(type_identifier) @name (generic_type (type_identifier) @name)] (class_body) @scope))))
(lambda_expression body: (object_creation_expression
  type: [(type_identifier) @name (generic_type (type_identifier) @name)] (class_body)) @scope)
(enum_constant name: (identifier) @name body: (class_body)) @scope

(field_declaration (modifiers "static" "final")
  declarator: (variable_declarator name: (identifier) @name)) @definition.constant
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.constant

; --- imports ---------------------------------------------------------------------------
(import_declaration (scoped_identifier) @import.path .)
(import_declaration [(scoped_identifier) (identifier)] @import.module (asterisk) @import.wildcard)

; --- references ------------------------------------------------------------------------
(method_invocation !object name: (identifier) @reference.call)
(method_invocation object: (_) @receiver name: (identifier) @reference.call)
(object_creation_expression type: (type_identifier) @reference.call)
(object_creation_expression type: (generic_type . (type_identifier) @reference.call))
(object_creation_expression type: (scoped_type_identifier (_) @receiver . (type_identifier) @reference.call .))
(method_reference . (_) @receiver (identifier) @reference.call .)
(marker_annotation name: (identifier) @reference.use)
(annotation name: (identifier) @reference.use)

(object_creation_expression type: (type_identifier) @reference.inherits (class_body))
(object_creation_expression
  type: (generic_type . (type_identifier) @reference.inherits) (class_body))
(superclass (type_identifier) @reference.inherits)
(superclass (generic_type . (type_identifier) @reference.inherits))
(superclass (scoped_type_identifier (_) @receiver . (type_identifier) @reference.inherits .))
(type_list (type_identifier) @reference.inherits)
(type_list (generic_type . (type_identifier) @reference.inherits))
(type_list (scoped_type_identifier (_) @receiver . (type_identifier) @reference.inherits .))

(scoped_type_identifier (_) @receiver . (type_identifier) @reference.type .)
(type_identifier) @reference.type
; Type.CONSTANT and Type.method(): the type is used, too
(field_access object: (identifier) @reference.value)
(method_invocation object: (identifier) @reference.value)
(argument_list (identifier) @reference.value)
(switch_label (identifier) @reference.value)

; --- what a variable holds -------------------------------------------------------------
(formal_parameter type: (_) @variable.type name: (identifier) @variable)
(local_variable_declaration type: (_) @variable.type
  declarator: (variable_declarator name: (identifier) @variable) (#not-eq? @variable.type "var"))
(local_variable_declaration declarator: (variable_declarator name: (identifier) @variable
  value: (object_creation_expression type: (_) @variable.type)))
(field_declaration type: (_) @variable.type
  declarator: (variable_declarator name: (identifier) @variable))
(enhanced_for_statement type: (_) @variable.type name: (identifier) @variable)
(resource type: (_) @variable.type name: (identifier) @variable)
(instanceof_expression right: (_) @variable.type name: (identifier) @variable)
(assignment_expression left: (field_access object: (this) field: (identifier) @variable.member)
  right: (identifier) @variable.copied)
